//! Recognises the format of a list of virtual servers, and assembles the result.

use std::collections::HashMap;

use uturn_model::SourceName;

use super::{RealServer, VirtualAddress, VirtualServer, VirtualServers};
use super::{listing, save};
use crate::ParseError;

/// Column and message.
pub(super) type Fault = (u32, String);

/// Parses the output of `ipvsadm -Sn` or `ipvsadm -Ln`, or the contents of `/proc/net/ip_vs`.
///
/// # Errors
///
/// Returns all errors of the text, each with its place.
pub fn parse(source: impl Into<SourceName>, text: &str) -> Result<VirtualServers, Vec<ParseError>> {
    let mut list = List {
        file: source.into(),
        servers: Vec::new(),
        places: HashMap::new(),
        errors: Vec::new(),
    };
    if text.trim_start().starts_with("IP Virtual Server version") {
        listing::read(text, &mut list);
    } else {
        save::read(text, &mut list);
    }
    if !text.is_empty() && !text.ends_with('\n') {
        let number = text.lines().count() as u32;
        let message = "the text ends within this line, expected a line break: the dump is cut";
        list.errors.push(ParseError::new(&list.file, number, 1, message));
    }
    if list.errors.is_empty() { Ok(VirtualServers(list.servers)) } else { Err(list.errors) }
}

/// The virtual servers that were parsed so far, and the errors.
pub(super) struct List {
    pub(super) file: SourceName,
    servers: Vec<VirtualServer>,
    places: HashMap<VirtualAddress, usize>,
    errors: Vec<ParseError>,
}

impl List {
    pub(super) fn fault(&mut self, line: u32, (column, message): Fault) {
        self.errors.push(ParseError::new(&self.file, line, column, message));
    }

    pub(super) fn open(&mut self, server: VirtualServer) -> Result<(), String> {
        if let Some(before) = self.places.get(&server.at) {
            let line = self.servers[*before].origin.line();
            return Err(format!(
                "virtual server {} a second time, the first is on line {line}",
                server.at
            ));
        }
        self.places.insert(server.at, self.servers.len());
        self.servers.push(server);
        Ok(())
    }

    /// Adds a real server to a virtual one, or to the latest.
    pub(super) fn add(
        &mut self,
        to: Option<VirtualAddress>,
        real: RealServer,
    ) -> Result<(), String> {
        let place = match to {
            Some(at) => self.places.get(&at).copied().ok_or(at),
            None => {
                return match self.servers.last_mut() {
                    Some(server) => {
                        server.servers.push(real);
                        Ok(())
                    }
                    None => Err("found a real server, expected a virtual server before it".into()),
                };
            }
        };
        match place {
            Ok(place) => {
                self.servers[place].servers.push(real);
                Ok(())
            }
            Err(at) => Err(format!("there is no virtual server {at} before this line")),
        }
    }
}
