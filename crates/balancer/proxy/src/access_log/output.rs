//! The output of the access log.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use uturn_lb::config::AccessLog;

/// The place that entries are written to.
pub(crate) enum Output {
    /// Nowhere.
    Off,
    /// Standard output.
    Stdout,
    /// A file, to which entries are appended.
    File(File),
    /// Anything that a test provides.
    #[cfg(test)]
    Stream(Box<dyn Write + Send>),
}

impl Output {
    /// Opens the configured output. A file is created if it does not exist.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub(super) fn open(config: &AccessLog) -> io::Result<Self> {
        Ok(match config {
            AccessLog::Off => Self::Off,
            AccessLog::Stdout => Self::Stdout,
            AccessLog::File(path) => {
                Self::File(OpenOptions::new().append(true).create(true).open(path)?)
            }
        })
    }

    /// Writes whole lines.
    ///
    /// # Errors
    /// When the output fails.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::Off => Ok(()),
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(lines)?;
                stdout.flush()
            }
            Self::File(file) => file.write_all(lines),
            #[cfg(test)]
            Self::Stream(stream) => stream.write_all(lines),
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "Off",
            Self::Stdout => "Stdout",
            Self::File(_) => "File",
            #[cfg(test)]
            Self::Stream(_) => "Stream",
        })
    }
}
