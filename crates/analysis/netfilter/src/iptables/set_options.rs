//! Parses the options of the matches `set` and `ipvs`.

use uturn_model::Text;

use super::match_options::{Args, Refusal, Taken, set_once};
use super::value::addresses;
use super::*;
use crate::ipvs::Forwarding;

pub(super) fn set(set: &mut SetMatch, option: &str, not: bool, args: &mut Args<'_, '_>) -> Taken {
    match option {
        // `--set` is the deprecated name.
        "--match-set" | "--set" if set.directions.is_empty() => {
            set.set = Not { not, value: Text::from(&*args.value()?.text) };
            let expected = "one to six of src and dst, with commas between";
            set.directions = args.read(expected, |word, _| directions(word))?;
        }
        "--return-nomatch" if !not => set.return_nomatch = true,
        "--update-counters" if not => set.keep_counters = true,
        "--update-subcounters" if not => set.keep_subcounters = true,
        "--match-set"
        | "--packets-eq"
        | "--packets-lt"
        | "--packets-gt"
        | "--bytes-eq"
        | "--bytes-lt"
        | "--bytes-gt"
        | "--update-counters"
        | "--update-subcounters" => {
            return Err(Refusal::Unmodelled);
        }
        _ => return Err(Refusal::NotMine),
    }
    Ok(())
}

/// `src,dst,dst`
pub(crate) fn directions(word: &str) -> Option<Vec<SetDirection>> {
    let direction = |part: &str| match part {
        "src" => Some(SetDirection::Source),
        "dst" => Some(SetDirection::Destination),
        _ => None,
    };
    let all: Vec<SetDirection> = word.split(',').map(direction).collect::<Option<_>>()?;
    (all.len() <= 6).then_some(all)
}

pub(super) fn ipvs(
    ipvs: &mut IpvsMatch,
    option: &str,
    not: bool,
    args: &mut Args<'_, '_>,
) -> Taken {
    let port = |word: &str, _| word.parse().ok();
    match option {
        "--ipvs" => ipvs.handled = Some(!not),
        "--vproto" => {
            let value = args.read("a protocol", |word, _| IpProtocol::from_word(word))?;
            set_once(&mut ipvs.protocol, not, value)?;
        }
        "--vaddr" => {
            let value = args.read("an address or a network", addresses)?;
            set_once(&mut ipvs.address, not, value)?;
        }
        "--vport" => {
            let value = args.read("a port", port)?;
            set_once(&mut ipvs.port, not, value)?;
        }
        "--vportctl" => {
            let value = args.read("a port", port)?;
            set_once(&mut ipvs.control_port, not, value)?;
        }
        "--vdir" if !not => {
            ipvs.direction = Some(args.read("ORIGINAL or REPLY", |word, _| match word {
                "ORIGINAL" => Some(CtDirection::Original),
                "REPLY" => Some(CtDirection::Reply),
                _ => None,
            })?);
        }
        "--vmethod" => {
            let value = args.read("GATE, IPIP or MASQ", |word, _| match word {
                "GATE" => Some(Forwarding::Direct),
                "IPIP" => Some(Forwarding::Tunnel),
                "MASQ" => Some(Forwarding::Masquerade),
                _ => None,
            })?;
            set_once(&mut ipvs.method, not, value)?;
        }
        _ => return Err(Refusal::NotMine),
    }
    Ok(())
}
