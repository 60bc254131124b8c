//! Opens and closes the tables of a text.

use super::{InputKind, Reader};
use crate::iptables::chain_names::ChainNames;
use crate::iptables::table_builder::TableBuilder;
use crate::iptables::{Origin, Table, TableKind};

impl<'a> Reader<'a> {
    pub(super) fn open(&mut self, name: &str, behind: &str, number: u32) -> Result<(), String> {
        let name = name.trim();
        self.has_table = true;
        let unfinished = self.table.take();
        let kind = TableKind::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or_else(|| {
            format!("found table {name:?}, expected raw, mangle, nat, filter or security")
        });
        // Rules of an unreadable table are still checked, as if they belonged to `filter`.
        let shown = *kind.as_ref().unwrap_or(&TableKind::Filter);
        let origin = Origin::line_of(self.file.clone(), number);
        let count = declared(behind);
        let table = Table { kind: shown, chains: Vec::with_capacity(count), origin };
        self.table = Some(TableBuilder::new(table, ChainNames::with_room(count)));
        kind?;
        if self.kind == InputKind::Fragment {
            self.put_back(unfinished);
        } else if let Some(before) = unfinished {
            let line = before.table.origin.line();
            return Err(format!("found a new table, expected COMMIT for the one of line {line}"));
        }
        match self.ruleset.table(shown) {
            Some(_) if self.kind == InputKind::Fragment => {
                let at = self.ruleset.tables.iter().position(|table| table.kind == shown);
                if let Some(at) = at {
                    self.resume(at);
                }
                Ok(())
            }
            Some(before) => {
                let line = before.origin.line();
                Err(format!(
                    "table {name} a second time, the first is on line {line}: are these two dumps in one file?"
                ))
            }
            None => Ok(()),
        }
    }

    /// Continues an existing table, which an empty one replaces meanwhile.
    fn resume(&mut self, at: usize) {
        let kind = self.ruleset.tables[at].kind;
        if let Some(parked) = self.parked.iter().position(|open| open.table.kind == kind) {
            self.table = Some(self.parked.swap_remove(parked));
            return;
        }
        let place = &mut self.ruleset.tables[at];
        let empty = Table { kind: place.kind, chains: Vec::new(), origin: place.origin.clone() };
        let table = std::mem::replace(place, empty);
        let names = table.chains.iter().map(|chain| chain.name.clone()).collect();
        self.table = Some(TableBuilder::new(table, names));
    }

    pub(super) fn put_back(&mut self, open: Option<TableBuilder<'a>>) {
        let Some(open) = open else { return };
        let (kind, origin) = (open.table.kind, open.table.origin.clone());
        let known = self.ruleset.tables.iter().position(|table| table.kind == kind);
        let at = known.unwrap_or(self.ruleset.tables.len());
        if known.is_none() {
            self.ruleset.tables.push(Table { kind, chains: Vec::new(), origin });
        }
        match self.kind {
            InputKind::Dump => self.ruleset.tables[at] = open.finish(),
            InputKind::Fragment => self.parked.push(open),
        }
    }

    pub(super) fn commit(&mut self) -> Result<(), String> {
        let open = self.table.take().ok_or("found COMMIT, expected a table before it")?;
        if self.kind == InputKind::Fragment || self.ruleset.table(open.table.kind).is_none() {
            self.put_back(Some(open));
        }
        Ok(())
    }
}

/// An estimate of the number of chains declared in the next lines, bounded by the length of the
/// text, so that no text reserves much more memory than its own size.
fn declared(text: &str) -> usize {
    const SHORT: usize = ":INPUT ACCEPT [0:0]".len();
    let lines = text.lines().skip(1).take_while(|line| line.starts_with(':'));
    let (count, length) =
        lines.fold((0, 0), |(count, length), line| (count + 1, length + line.len()));
    count.min(length / SHORT)
}
