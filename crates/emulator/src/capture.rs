//! Captures of links as pcapng files.

use std::path::{Path, PathBuf};

use flowstart_network::Ecn;
use flowstart_pcapng::{File, Layer};

use crate::Error;
use crate::record::{Fate, PacketRecord};
use crate::wire::{self, ETHERNET};

/// Writes the packets of one link into a pcapng file: headers, at the time at which their
/// transmission began (marks included), with their wait in the queue as a comment; or at the time
/// at which they were dropped, on an interface of their own. What still waits at the end is in no
/// capture. Times count from the start of the world.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    file: File,
}

impl Capture {
    /// A capture of the link called `name` into the file `path`, which appears when
    /// [`Capture::finish`] succeeds.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn new(name: &str, path: &Path) -> Result<Self, Error> {
        let places = ["transmission", "dropped"].map(|place| format!("{name}: {place}"));
        let file = File::create(path, Layer::Ethernet, &places).map_err(|error| cannot_write(path, &error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Adds a packet.
    pub fn add(&mut self, record: &PacketRecord<'_>) {
        if !self.file.takes_more() {
            return;
        }
        let comment = match record.fate {
            Fate::Stayed { .. } => return,
            Fate::Sent { began, .. } => {
                format!("waited {:.3} us", began.since(record.arrived).as_nanos() as f64 / 1e3)
            }
            Fate::Dropped { reason, .. } => format!("dropped by the queue: {}", reason.name()),
            Fate::Lost => "taken by the loss process".to_owned(),
        };
        let mut headers = record.headers.to_vec();
        if record.ecn == Ecn::Ce {
            wire::set_ce(&mut headers);
        }
        let place = usize::from(record.waited().is_none());
        self.file.add(place, record.time(), headers, record.bytes + ETHERNET as u32, Some(comment));
    }

    /// Completes the file. Returns how many packets are in it.
    ///
    /// # Errors
    /// If something could not be written; then there is no file.
    pub fn finish(self) -> Result<u64, Error> {
        self.file.finish().map_err(|error| cannot_write(&self.path, &error))
    }
}

fn cannot_write(path: &Path, error: &flowstart_pcapng::Error) -> Error {
    Error::doing(format_args!("write {}", path.display()), error)
}
