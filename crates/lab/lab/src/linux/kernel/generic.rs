//! Generic netlink: resolves a family by name, sends requests and returns the answers as bytes.

use std::io;

use netlink_sys::protocols::NETLINK_GENERIC;
use netlink_sys::{Socket, SocketAddr};
use uturn_netns::netlink::{Attributes, Message, NLM_F_ACK, NLM_F_DUMP, find, read_u16, request};

/// The controller, which resolves all other families.
const CONTROLLER: Family = Family { id: 16, version: 1 };
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// A family of messages, with its number in this kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family {
    id: u16,
    version: u8,
}

/// A connection to the kernel, in the namespace of the thread that opened it.
pub(crate) struct Generic {
    socket: Socket,
    sequence: u32,
}

impl Generic {
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_GENERIC)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Resolves a family by name.
    pub(crate) fn family(&mut self, name: &str, version: u8) -> io::Result<Family> {
        let asked = Attributes::default().text(CTRL_ATTR_FAMILY_NAME, name);
        let answers = self.ask(CONTROLLER, CTRL_CMD_GETFAMILY, NLM_F_ACK, &asked)?;
        let id = answers.iter().find_map(|answer| read_u16(find(answer, CTRL_ATTR_FAMILY_ID)?));
        let id = id.ok_or_else(|| io::Error::other(format!("netlink names no family {name}")))?;
        Ok(Family { id, version })
    }

    /// Sends a command and waits for its acknowledgement.
    pub(crate) fn change(
        &mut self,
        family: Family,
        command: u8,
        what: &Attributes,
    ) -> io::Result<()> {
        self.ask(family, command, NLM_F_ACK, what).map(drop)
    }

    /// Dumps all objects. Returns the attributes of each answer.
    pub(crate) fn list(
        &mut self,
        family: Family,
        command: u8,
        of: &Attributes,
    ) -> io::Result<Vec<Vec<u8>>> {
        self.ask(family, command, NLM_F_DUMP, of)
    }

    fn ask(
        &mut self,
        family: Family,
        command: u8,
        flags: u16,
        what: &Attributes,
    ) -> io::Result<Vec<Vec<u8>>> {
        self.sequence += 1;
        let own = [command, family.version, 0, 0];
        let message = request(family.id, flags, self.sequence, own, what);
        self.socket.send(&message, 0)?;
        let mut answers = Vec::new();
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            if read_answers(&bytes, self.sequence, &mut answers)? {
                return Ok(answers);
            }
        }
    }
}

/// Appends the answers in one packet to `into`. Returns whether they were the last.
fn read_answers(bytes: &[u8], sequence: u32, into: &mut Vec<Vec<u8>>) -> io::Result<bool> {
    for message in Message::all(bytes) {
        let message = message?;
        if message.sequence != sequence {
            continue;
        }
        match message.end() {
            Some(end) => return end.map(|()| true),
            None => into.push(message.attributes().to_vec()),
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_other_requests_are_passed_over() {
        let other = request(20, 0, 8, [0; 4], &Attributes::default());
        let own = request(20, 0, 7, [0; 4], &Attributes::default().number(1, 5));
        let mut answers = Vec::new();
        assert!(!read_answers(&[other, own].concat(), 7, &mut answers).unwrap());
        assert_eq!(answers, [Attributes::default().number(1, 5).as_bytes()]);
        assert!(read_answers(&[1, 2, 3], 7, &mut answers).is_err());
    }
}
