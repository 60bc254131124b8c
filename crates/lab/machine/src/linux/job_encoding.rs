//! Encodes a [`Job`] as bytes, which is how it gets into the machine.
//!
//! Every string is preceded by its length, so no byte of a path, an argument or the input needs
//! escaping.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::Job;

/// Encodes a job.
pub(super) fn write(job: &Job) -> Vec<u8> {
    let mut encoded = Vec::new();
    put(&mut encoded, job.program.as_os_str().as_bytes());
    put(&mut encoded, job.folder.as_os_str().as_bytes());
    put(&mut encoded, &job.stdin);
    put_count(&mut encoded, job.arguments.len());
    job.arguments.iter().for_each(|argument| put(&mut encoded, argument.as_bytes()));
    put_count(&mut encoded, job.environment.len());
    for (name, value) in &job.environment {
        put(&mut encoded, name.as_bytes());
        put(&mut encoded, value.as_bytes());
    }
    put_count(&mut encoded, job.shared.len());
    job.shared.iter().for_each(|folder| put(&mut encoded, folder.as_os_str().as_bytes()));
    encoded
}

/// Decodes a job. Returns `None` if the bytes are truncated or are no encoded job.
pub(super) fn read(encoded: &[u8]) -> Option<Job> {
    let mut rest = encoded;
    let program = PathBuf::from(text(&mut rest)?);
    let folder = PathBuf::from(text(&mut rest)?);
    let stdin = take(&mut rest)?.to_vec();
    let arguments = counted(&mut rest)?;
    let arguments = (0..arguments).map(|_| text(&mut rest)).collect::<Option<_>>()?;
    let environment = counted(&mut rest)?;
    let environment = (0..environment)
        .map(|_| Some((text(&mut rest)?, text(&mut rest)?)))
        .collect::<Option<_>>()?;
    let shared = counted(&mut rest)?;
    let shared = (0..shared).map(|_| text(&mut rest).map(PathBuf::from)).collect::<Option<_>>()?;
    rest.is_empty().then_some(Job { program, arguments, environment, folder, stdin, shared })
}

fn put_count(encoded: &mut Vec<u8>, number: usize) {
    encoded.extend((number as u64).to_le_bytes());
}

fn put(encoded: &mut Vec<u8>, bytes: &[u8]) {
    put_count(encoded, bytes.len());
    encoded.extend(bytes);
}

fn counted(rest: &mut &[u8]) -> Option<usize> {
    let (number, after) = rest.split_first_chunk()?;
    *rest = after;
    usize::try_from(u64::from_le_bytes(*number)).ok()
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = counted(rest)?;
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(bytes)
}

fn text(rest: &mut &[u8]) -> Option<OsString> {
    take(rest).map(|bytes| OsStr::from_bytes(bytes).to_os_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn job() -> Job {
        Job {
            program: "/bin/sh".into(),
            arguments: ["-c", "", "echo \"a\0b\n\""].map(Into::into).into(),
            environment: vec![("A".into(), OsString::from_vec(vec![0xff, b'=', b'\n']))],
            folder: "/".into(),
            stdin: vec![0; 70_000],
            shared: vec!["/a b".into()],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(read(&write(&job())), Some(job()));
    }

    #[test]
    fn a_truncated_job_is_none() {
        let encoded = write(&job());
        for length in (0..200).chain(encoded.len() - 200..encoded.len()) {
            assert_eq!(read(&encoded[..length]), None, "{length}");
        }
        let mut longer = encoded;
        longer.push(0);
        assert_eq!(read(&longer), None);
    }
}
