//! The text of IPVS: the output of `ipvsadm -Sn` and `ipvsadm -Ln`, and `/proc/net/ip_vs`.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common::read;
use uturn_netfilter::ipvs;

const SAVED: &str = "\
-A -t 172.16.0.1:443 -s rr
-a -t 172.16.0.1:443 -r 10.99.0.1:16443 -m -w 1
-A -t 203.0.113.1:80 -s wrr -p 600 -M 255.255.255.0
-a -t 203.0.113.1:80 -r 10.1.0.7:8080 -m -w 3
-a -t 203.0.113.1:80 -r 10.1.0.8:80 -g -w 0
-a -t 203.0.113.1:80 -r 10.1.0.9:80 -i -w 1 --tun-type gue --tun-port 6080 --tun-nocsum
-A -u [fd00::1]:53 -s sh -o -b sh-fallback,sh-port
-a -u [fd00::1]:53 -r [fd00:1::7]:5353 -m -w 1
-A -t [fd00::1]:80 -s lc -p 10 -M 64
-A --sctp-service 10.0.0.2:30132 -s rr --pe sip
-A -f 7 -s wlc
-a -f 7 -r 10.1.0.7:0 -g -w 1
-A -f 7 -6 -s wlc
";

#[test]
fn what_was_read_prints_back_to_the_letter() {
    assert_eq!(ipvs::parse("ipvs.save", SAVED).unwrap().to_string(), SAVED);
    for node in ["ipvs-n1", "ipvs-n2"] {
        let text = read(node, "ipvs.save");
        assert_eq!(ipvs::parse("ipvs.save", &text).unwrap().to_string(), text, "{node}");
    }
}

#[test]
fn the_long_spellings_and_what_may_be_left_out() {
    let long = "--add-service --tcp-service 10.0.0.1:80 --persistent\n\
                --add-server --tcp-service 10.0.0.1:80 --real-server 10.1.0.7 --weight 2\n";
    assert_eq!(
        ipvs::parse("s", long).unwrap().to_string(),
        "-A -t 10.0.0.1:80 -s wlc -p 300\n-a -t 10.0.0.1:80 -r 10.1.0.7:80 -g -w 2\n"
    );
}

#[test]
fn tables_are_read_as_well() {
    let shown = "IP Virtual Server version 1.2.1 (size=4096)\n\
        Prot LocalAddress:Port Scheduler Flags\n  \
        -> RemoteAddress:Port           Forward Weight ActiveConn InActConn\n\
        TCP  172.16.0.1:443 rr\n  \
        -> 10.99.0.1:16443              Masq    1      3          0         \n\
        TCP  203.0.113.1:80 wrr persistent 600 mask 255.255.255.0\n  \
        -> 10.1.0.7:8080                Masq    3      0          0\n  \
        -> 10.1.0.8:80                  Route   0      0          0\n  \
        -> 10.1.0.9:80                  Tunnel  1      0          0\n\
        UDP  [fd00::1]:53 sh ops (sh-fallback,sh-port)\n  \
        -> [fd00:1::7]:5353             Masq    1      0          0\n\
        FWM  7 wlc\n  -> 10.1.0.7:0                   Route   1      0          0\n\
        FWM  7 IPv6 wlc\n";
    assert_eq!(
        ipvs::parse("ipvs", shown).unwrap().to_string(),
        "-A -t 172.16.0.1:443 -s rr\n-a -t 172.16.0.1:443 -r 10.99.0.1:16443 -m -w 1\n\
         -A -t 203.0.113.1:80 -s wrr -p 600 -M 255.255.255.0\n\
         -a -t 203.0.113.1:80 -r 10.1.0.7:8080 -m -w 3\n\
         -a -t 203.0.113.1:80 -r 10.1.0.8:80 -g -w 0\n\
         -a -t 203.0.113.1:80 -r 10.1.0.9:80 -i -w 1\n\
         -A -u [fd00::1]:53 -s sh -o -b sh-fallback,sh-port\n\
         -a -u [fd00::1]:53 -r [fd00:1::7]:5353 -m -w 1\n\
         -A -f 7 -s wlc\n-a -f 7 -r 10.1.0.7:0 -g -w 1\n-A -f 7 -6 -s wlc\n"
    );
    let proc = "IP Virtual Server version 1.2.1 (size=4096)\n\
        Prot LocalAddress:Port Scheduler Flags\n  \
        -> RemoteAddress:Port Forward Weight ActiveConn InActConn\n\
        TCP  AC100001:01BB rr \n  -> 0A630001:403B      Masq    1      3          0         \n\
        TCP  CB007101:0050 wrr persistent 150000 FFFFFF00\n  \
        -> 0A010007:1F90      Local   3      0          0         \n\
        UDP  [fd00:0000:0000:0000:0000:0000:0000:0001]:0035 rr ops \n  \
        -> [fd00:0001:0000:0000:0000:0000:0000:0007]:14E9      Masq    1      0          0\n\
        FWM  00000010 wlc \n";
    assert_eq!(
        ipvs::parse("ip_vs", proc).unwrap().to_string(),
        "-A -t 172.16.0.1:443 -s rr\n-a -t 172.16.0.1:443 -r 10.99.0.1:16443 -m -w 1\n\
         -A -t 203.0.113.1:80 -s wrr -p -M 255.255.255.0\n\
         -a -t 203.0.113.1:80 -r 10.1.0.7:8080 -g -w 3\n\
         -A -u [fd00::1]:53 -s rr -o\n-a -u [fd00::1]:53 -r [fd00:1::7]:5353 -m -w 1\n\
         -A -f 16 -s wlc\n"
    );
}

#[test]
fn every_bad_line_is_named() {
    let text = "-D -t 10.0.0.1:80\n-A -t kubernetes:https -s rr\n-A -s rr\n-A -t 10.0.0.1:80 -s rr\n\
                -A -t 10.0.0.1:80 -s wrr\n-a -t 10.0.0.2:80 -r 10.1.0.7:80 -m\n-a -t 10.0.0.1:80 -m -w 1\n\
                -a -t 10.0.0.1:80 -r 10.1.0.7:80 -w x\n-A -t 10.0.0.3:80 -s\n-A -t 10.0.0.4:80 -q";
    let shown: Vec<String> =
        ipvs::parse("s", text).unwrap_err().iter().map(ToString::to_string).collect();
    let address = "expected an address with a port: `10.0.0.1:80` (capture with -n)";
    assert_eq!(
        shown,
        [
            r#"s:1:1: found "-D", expected -A or -a"#.to_owned(),
            format!(r#"s:2:7: found "kubernetes:https", {address}"#),
            "s:3:1: expected one of -t, -u, --sctp-service and -f".into(),
            "s:5:1: virtual server -t 10.0.0.1:80 a second time, the first is on line 4".into(),
            "s:6:1: there is no virtual server -t 10.0.0.2:80 before this line".into(),
            "s:7:1: found no real server, expected -r".into(),
            r#"s:8:37: found "x", expected a weight"#.into(),
            "s:9:19: found nothing after -s, expected a scheduler".into(),
            r#"s:10:19: found "-q", expected an option of ipvsadm"#.into(),
            "s:10:1: the text ends within this line, expected a line break: the dump is cut".into(),
        ]
    );
    let table = "IP Virtual Server version 1.2.1 (size=4096)\n  -> 10.0.0.1:80 Masq 1\nTCP x rr\nXTP 1\n\
                 TCP 10.0.0.1:80\nTCP 10.0.0.1:81 rr odd\n";
    let shown: Vec<String> =
        ipvs::parse("s", table).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "s:2:3: found a real server, expected a virtual server before it".to_owned(),
            format!(r#"s:3:5: found "x", {address}"#),
            r#"s:4:1: found "XTP", expected TCP, UDP, SCTP, FWM or ->"#.into(),
            "s:5:1: the line ends early, expected a scheduler".into(),
            r#"s:6:20: found "odd", expected persistent, mask, ops, pe or (flags)"#.into(),
        ]
    );
}

#[test]
fn a_dump_cut_anywhere_is_refused_or_ends_with_a_line() {
    for end in 0..SAVED.len() {
        match ipvs::parse("s", &SAVED[..end]) {
            Ok(servers) => assert_eq!(servers.to_string(), SAVED[..end]),
            Err(errors) => assert!(errors.iter().all(|error| error.origin.line() > 0)),
        }
    }
}

/// As a 6.1 kernel wrote it: marks without their family, an IPv6 prefix length in the wrong byte
/// order.
#[test]
fn the_kernels_own_table_of_both_families() {
    let proc = "IP Virtual Server version 1.2.1 (size=4096)\n\
        Prot LocalAddress:Port Scheduler Flags\n  \
        -> RemoteAddress:Port Forward Weight ActiveConn InActConn\n\
        UDP  [fd00:0000:0000:0000:0000:0000:0000:0001]:0035 rr persistent 1000 40000000\n  \
        -> [fd00:0001:0000:0000:0000:0000:0000:0007]:14E9      Masq    1      0          0         \n\
        UDP  0A000002:0035 sh ops  \nFWM  01000000 rr \nFWM  00000007 rr \nFWM  00000007 rr \n  \
        -> 0A010007:0000      Route   0      0          0         \n";
    assert_eq!(
        ipvs::parse("ip_vs", proc).unwrap().to_string(),
        "-A -u [fd00::1]:53 -s rr -p -M 64\n-a -u [fd00::1]:53 -r [fd00:1::7]:5353 -m -w 1\n\
         -A -u 10.0.0.2:53 -s sh -o\n-A -f 16777216 -s rr\n-A -f 7 -6 -s rr\n-A -f 7 -s rr\n\
         -a -f 7 -r 10.1.0.7:0 -g -w 0\n"
    );
    // `ipvsadm -Ln` prints flags and options in another order.
    let shown = "IP Virtual Server version 1.2.1 (size=4096)\n\
        UDP  10.0.0.2:53 sh (sh-fallback,sh-port) ops\n";
    assert_eq!(
        ipvs::parse("ipvs", shown).unwrap().to_string(),
        "-A -u 10.0.0.2:53 -s sh -o -b sh-fallback,sh-port\n"
    );
}
