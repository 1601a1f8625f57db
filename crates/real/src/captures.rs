//! Captures of all links, fed by the thread that hears of packets.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use flowstart_emulator::{Capture, PacketRecord, file_name};

use super::Error;

/// A capture for every link, or none at all.
#[derive(Clone, Default)]
pub(super) struct Captures(Arc<Mutex<Vec<Capture>>>);

impl Captures {
    /// A file per link in the folder, if there is one; it must be there already.
    pub(super) fn new(folder: Option<&Path>, links: &[String]) -> Result<Self, Error> {
        let Some(folder) = folder else { return Ok(Self::default()) };
        let file = |link: &str| folder.join(format!("{}.pcapng", file_name(link)));
        let captures = links.iter().map(|link| Capture::new(link, &file(link)));
        Ok(Self(Arc::new(Mutex::new(captures.collect::<Result<_, _>>()?))))
    }

    /// Adds a packet to its link's.
    pub(super) fn add(&self, record: &PacketRecord<'_>) {
        if let Some(capture) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(record.link) {
            capture.add(record);
        }
    }

    /// Makes the files appear.
    pub(super) fn finish(&self) -> Result<(), Error> {
        let captures = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for capture in captures {
            capture.finish()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_stay_in_their_folder_whatever_links_are_called() {
        let around = tempfile::tempdir().unwrap();
        let folder = around.path().join("captures");
        std::fs::create_dir(&folder).unwrap();
        let absolute = around.path().join("victim").to_string_lossy().into_owned();
        let links = ["../victim", "a/b", &absolute].map(str::to_owned);
        Captures::new(Some(&folder), &links).unwrap().finish().unwrap();
        assert_eq!(std::fs::read_dir(around.path()).unwrap().count(), 1);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
    }
}
