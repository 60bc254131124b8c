//! Where the access log goes.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use uturn_lb::config::AccessLog;

/// Where entries are written.
pub(crate) enum Output {
    /// Nowhere.
    Off,
    /// To standard output.
    Stdout,
    /// To a file, behind what it has.
    File(File),
    /// To whatever a test gives.
    #[cfg(test)]
    Stream(Box<dyn Write + Send>),
}

impl Output {
    /// Opens what the configuration names. A file is made if there is none.
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
    /// When it takes no more.
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
