//! A disk in memory that records every operation, and may run full.

use std::io;
use std::sync::{Arc, Mutex};

use redb::StorageBackend;

/// An operation on a file.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Write { offset: usize, bytes: Vec<u8> },
    SetLength(usize),
    Sync,
}

impl Operation {
    /// Applies the operation to the bytes of a file.
    pub(super) fn apply(&self, file: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if file.len() < end {
                    file.resize(end, 0);
                }
                file[*offset..end].copy_from_slice(bytes);
            }
            Self::SetLength(length) => file.resize(*length, 0),
            Self::Sync => {}
        }
    }
}

/// A disk with one file. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk(Arc<Mutex<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    file: Vec<u8>,
    log: Vec<Operation>,
    /// The number of operations that still succeed; `None` for no limit.
    room: Option<usize>,
}

impl Disk {
    /// Returns a disk whose file has these bytes.
    pub(super) fn holding(file: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(Contents { file, ..Contents::default() })))
    }

    /// Returns the bytes of the file.
    pub(super) fn file(&self) -> Vec<u8> {
        self.0.lock().unwrap().file.clone()
    }

    /// Returns the number of operations so far.
    pub(super) fn operations(&self) -> usize {
        self.0.lock().unwrap().log.len()
    }

    /// Returns all operations so far.
    pub(super) fn log(&self) -> Vec<Operation> {
        self.0.lock().unwrap().log.clone()
    }

    /// Lets this many operations succeed, or all.
    pub(super) fn set_room(&self, room: Option<usize>) {
        self.0.lock().unwrap().room = room;
    }

    /// Returns whether the disk has no room left for another operation.
    pub(super) fn is_full(&self) -> bool {
        self.0.lock().unwrap().room == Some(0)
    }

    fn perform(&self, operation: Operation) -> io::Result<()> {
        let mut contents = self.0.lock().unwrap();
        match &mut contents.room {
            Some(0) => {
                // The first half of the write still reaches the disk.
                if let Operation::Write { offset, mut bytes } = operation {
                    bytes.truncate(bytes.len() / 2);
                    Operation::Write { offset, bytes }.apply(&mut contents.file);
                }
                return Err(io::ErrorKind::StorageFull.into());
            }
            Some(room) => *room -= 1,
            None => {}
        }
        operation.apply(&mut contents.file);
        contents.log.push(operation);
        Ok(())
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().file.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let contents = self.0.lock().unwrap();
        let start = usize::try_from(offset).unwrap();
        let bytes = contents.file.get(start..start + out.len());
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.perform(Operation::SetLength(usize::try_from(length).unwrap()))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.perform(Operation::Sync)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        self.perform(Operation::Write { offset, bytes: data.to_vec() })
    }
}
