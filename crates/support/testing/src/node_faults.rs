//! Faults for the rules and sysctls of a node, as shell scripts that run in its network namespace,
//! each with the code of the finding that a capture of that namespace then has.

/// A fault of a node.
#[derive(Clone, Copy, Debug)]
pub struct NodeFault {
    /// A description of the fault.
    pub name: &'static str,
    /// The script, for `sh -e`.
    pub script: &'static str,
    /// The code of the finding.
    pub code: &'static str,
}

const fn fault(name: &'static str, script: &'static str, code: &'static str) -> NodeFault {
    NodeFault { name, script, code }
}

/// Faults for a kube-proxy in iptables mode. The node has a bridge `cbr0` with its pods, and
/// rules in the nf_tables back end of iptables.
pub const IPTABLES: &[NodeFault] = &[
    fault(
        "the chain of a Service is flushed",
        r"chain=$(iptables-save -t nat | sed -n 's/^-A \(KUBE-SVC-[A-Z0-9]*\) .*-j KUBE-SEP-.*/\1/p' | head -n 1)
        iptables -t nat -F $chain",
        "UT602",
    ),
    fault(
        "an endpoint is removed",
        "iptables-save -t nat >before
        line=$(grep -n -m 1 '^-A KUBE-SVC-.*-j KUBE-SEP-' before | cut -d : -f 1)
        sed \"${line}d\" before | iptables-restore -T nat",
        "UT605",
    ),
    fault(
        "an endpoint has another address",
        "iptables-save -t nat >before
        line=$(grep -n -m 1 '^-A KUBE-SEP-.*--to-destination' before | cut -d : -f 1)
        sed \"${line}s/--to-destination [0-9.]*:/--to-destination 10.99.99.99:/\" before | iptables-restore -T nat",
        "UT605",
    ),
    fault(
        "a Service that is gone has rules",
        "iptables -t nat -N KUBE-SVC-AAAAAAAAAAAAAAAA
        iptables -t nat -A KUBE-SVC-AAAAAAAAAAAAAAAA -j RETURN
        iptables -t nat -I KUBE-SERVICES -d 172.16.99.99 -p tcp --dport 80 -j KUBE-SVC-AAAAAAAAAAAAAAAA",
        "UT606",
    ),
    fault(
        "nothing leads to kube-proxy's chains",
        "iptables-save -t nat | grep -v '^-A PREROUTING .*-j KUBE-SERVICES' | iptables-restore -T nat",
        "UT602",
    ),
    fault("all rules are flushed", "iptables -F; iptables -X; iptables -t nat -F; iptables -t nat -X", "UT602"),
    fault(
        "a rule of another program drops what goes to Services",
        "iptables -t raw -I PREROUTING -d 172.16.0.0/16 -j DROP
        iptables -t raw -I OUTPUT -d 172.16.0.0/16 -j DROP",
        "UT601",
    ),
    fault(
        "a rule of another program sends calls to Services to a proxy",
        "iptables -t nat -I PREROUTING -d 172.16.0.0/16 -p tcp -j REDIRECT --to-ports 3128
        iptables -t nat -I OUTPUT -d 172.16.0.0/16 -p tcp -j REDIRECT --to-ports 3128",
        "UT605",
    ),
    fault(
        "nftables mode has left its table",
        "nft 'add table ip kube-proxy; add chain ip kube-proxy services; add rule ip kube-proxy services accept'",
        "UT607",
    ),
    fault("both back ends have rules", "iptables-nft-save | iptables-legacy-restore", "UT607"),
    fault(
        "another mode runs",
        "iptables -F; iptables -X; iptables -t nat -F; iptables -t nat -X
        nft 'add table ip kube-proxy; add chain ip kube-proxy services; add rule ip kube-proxy services accept'",
        "UT608",
    ),
    fault("it does not forward", "sysctl -qw net.ipv4.ip_forward=0", "UT604"),
    fault(
        "rules do not see what the bridge passes",
        "sysctl -qw net.bridge.bridge-nf-call-iptables=0",
        "UT603",
    ),
    fault(
        "kube-proxy's own sysctl is switched back",
        "sysctl -qw net.ipv4.conf.all.route_localnet=0",
        "UT610",
    ),
];

/// Faults for a kube-proxy in nftables mode.
pub const NFTABLES: &[NodeFault] = &[
    fault(
        "the chain of a Service is flushed",
        r"chain=$(nft list table ip kube-proxy | sed -n 's/^\tchain \(service-[^ ]*\) {/\1/p' | head -n 1)
        nft flush chain ip kube-proxy $chain",
        "UT602",
    ),
    fault(
        "the address of a Service is not in the map",
        r"key=$(nft list map ip kube-proxy service-ips | sed -n 's/.*[{\t ]\([0-9.]* \. tcp \. [0-9]*\) :.*/\1/p' | head -n 1)
        nft delete element ip kube-proxy service-ips { $key }",
        "UT602",
    ),
    fault(
        "a Service that is gone is in the map",
        "nft add element ip kube-proxy service-ips '{ 172.16.99.99 . tcp . 80 : drop }'",
        "UT606",
    ),
    fault(
        "an endpoint has another address",
        r"chain=$(nft list table ip kube-proxy | sed -n 's/^\tchain \(endpoint-[^ ]*\/tcp\/[^ ]*\) {/\1/p' | head -n 1)
        handle=$(nft -a list chain ip kube-proxy $chain | sed -n 's/.*dnat to .* # handle //p')
        nft replace rule ip kube-proxy $chain handle $handle meta l4proto tcp dnat to 10.99.99.99:1",
        "UT605",
    ),
    fault(
        "a table of another program drops what goes to Services",
        "nft 'add table inet hardening'
        nft 'add chain inet hardening early { type filter hook prerouting priority -300; }'
        nft 'add chain inet hardening out { type filter hook output priority -300; }'
        nft 'add rule inet hardening early ip daddr 172.16.0.0/16 drop'
        nft 'add rule inet hardening out ip daddr 172.16.0.0/16 drop'",
        "UT601",
    ),
    fault(
        "a table of another program sends calls to Services to a proxy",
        "nft 'add table ip proxy'
        nft 'add chain ip proxy early { type nat hook prerouting priority -110; }'
        nft 'add chain ip proxy out { type nat hook output priority -110; }'
        nft 'add rule ip proxy early ip daddr 172.16.0.0/16 ip protocol tcp redirect to :3128'
        nft 'add rule ip proxy out ip daddr 172.16.0.0/16 ip protocol tcp redirect to :3128'",
        "UT605",
    ),
    fault(
        "iptables mode has left its rules",
        "iptables -t nat -N KUBE-SVC-AAAAAAAAAAAAAAAA
        iptables -t nat -A KUBE-SVC-AAAAAAAAAAAAAAAA -j RETURN",
        "UT607",
    ),
    fault("the table is gone", "nft delete table ip kube-proxy", "UT602"),
    fault("it does not forward", "sysctl -qw net.ipv4.ip_forward=0", "UT604"),
];

/// Faults for a kube-proxy in IPVS mode, on a kernel that has the legacy back end of iptables.
pub const IPVS: &[NodeFault] = &[
    fault(
        "a virtual server is removed",
        r"server=$(ipvsadm -Sn | sed -n 's/^-A \(-t 172[0-9.:]*\) .*/\1/p' | head -n 1)
        ipvsadm -D $server",
        "UT602",
    ),
    fault("all virtual servers are removed", "ipvsadm -C", "UT602"),
    fault(
        "a virtual server has another scheduler",
        r"server=$(ipvsadm -Sn | sed -n 's/^-A \(-t 172[0-9.:]*\) -s rr$/\1/p' | head -n 1)
        ipvsadm -E $server -s lc",
        "UT602",
    ),
    fault(
        "a real server is removed",
        r"real=$(ipvsadm -Sn | sed -n 's/^-a \(-t 172[0-9.:]* -r [0-9.:]*\) .*/\1/p' | head -n 1)
        ipvsadm -d $real",
        "UT605",
    ),
    fault(
        "a real server gets no new connections",
        r"real=$(ipvsadm -Sn | sed -n 's/^-a \(-t 172[0-9.:]* -r [0-9.:]*\) .*/\1/p' | head -n 1)
        ipvsadm -e $real -m -w 0",
        "UT605",
    ),
    fault(
        "a virtual server has a real server that is no endpoint",
        r"server=$(ipvsadm -Sn | sed -n 's/^-A \(-t 172[0-9.:]*\) .*/\1/p' | head -n 1)
        ipvsadm -a $server -r 10.99.99.99:1 -m -w 1",
        "UT605",
    ),
    fault(
        "a Service that is gone has a virtual server",
        "ip addr add 172.16.99.99/32 dev kube-ipvs0
        ipvsadm -A -t 172.16.99.99:80 -s rr",
        "UT606",
    ),
    fault(
        "the address of a Service is not bound",
        r"address=$(ip addr show dev kube-ipvs0 | sed -n 's/.* inet \(172[0-9.]*\/32\) .*/\1/p' | head -n 1)
        ip addr del $address dev kube-ipvs0",
        "UT609",
    ),
    fault(
        "an address is bound that no Service has",
        "ip addr add 172.16.99.99/32 dev kube-ipvs0",
        "UT609",
    ),
    fault(
        "the address of a Service is not in its set",
        r"entry=$(ipset save KUBE-CLUSTER-IP | sed -n 's/^add //p' | head -n 1)
        ipset del $entry",
        "UT602",
    ),
    fault("the chain that masquerades is flushed", "iptables -t nat -F KUBE-POSTROUTING", "UT602"),
    fault(
        "iptables mode has left its rules",
        "iptables -t nat -N KUBE-SVC-AAAAAAAAAAAAAAAA
        iptables -t nat -A KUBE-SVC-AAAAAAAAAAAAAAAA -j RETURN",
        "UT607",
    ),
    fault(
        "a rule of another program drops what goes to Services",
        "iptables -t raw -I PREROUTING -d 172.16.0.0/16 -j DROP
        iptables -t raw -I OUTPUT -d 172.16.0.0/16 -j DROP",
        "UT601",
    ),
    fault(
        "a port that another program publishes takes calls to Services: their addresses are the node's",
        "for chain in PREROUTING OUTPUT; do
            iptables -t nat -I $chain -d 172.16.0.0/16 -p tcp -m addrtype --dst-type LOCAL -j DNAT --to-destination 10.99.99.99:80
        done",
        "UT605",
    ),
    fault("it does not forward", "sysctl -qw net.ipv4.ip_forward=0", "UT604"),
    fault(
        "kube-proxy's own sysctl is switched back",
        "sysctl -qw net.ipv4.vs.conntrack=0",
        "UT610",
    ),
];
