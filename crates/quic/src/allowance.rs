//! What each peer has had of late, and what it may still have.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use flowstart_units::{Bytes, Span, Time};

use crate::service::Service;

/// Steps in which the window moves on: what was had within one is forgotten together.
const STEPS: u64 = 60;
/// Peers that are remembered at most; then those go of whom nothing runs and who were there longest
/// ago. Each has shown that it receives at its address.
const MOST_PEERS: usize = 10_000;

/// Bytes of the application and time of transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) bytes: u64,
    pub(crate) time: Span,
}

impl Share {
    fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), time: self.time + other.time }
    }

    fn minus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_sub(other.bytes), time: self.time - other.time }
    }
}

/// Transfers that were over within one step.
#[derive(Clone, Copy, Debug)]
struct Step {
    first: Time,
    last: Time,
    had: Share,
}

#[derive(Clone, Debug, Default)]
struct Peer {
    had: VecDeque<Step>,
    /// What transfers that run may have at most.
    runs: Share,
    running: u32,
}

impl Peer {
    fn forget(&mut self, now: Time, window: Span) {
        while self.had.front().is_some_and(|step| step.last + window <= now) {
            self.had.pop_front();
        }
    }

    fn taken(&self) -> Share {
        self.had.iter().fold(self.runs, |sum, step| sum.plus(step.had))
    }

    /// When enough of what was had is forgotten for this, if that alone is enough.
    fn again(&self, wanted: Share, most: Share, window: Span) -> Option<Time> {
        let mut taken = self.taken();
        let fits = |taken: Share| {
            let left = most.minus(taken);
            left.bytes >= wanted.bytes && left.time >= wanted.time
        };
        self.had.iter().find_map(|step| {
            taken = taken.minus(step.had);
            fits(taken).then_some(step.last + window)
        })
    }
}

/// What peers have had.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowances {
    peers: HashMap<IpAddr, Peer>,
}

impl Allowances {
    /// What a transfer may have that asks for so much; for as much as there is, if it does not say.
    /// That counts as had until it is over.
    ///
    /// # Errors
    /// If that is more than its peer may still have: a sentence that says when it may come again.
    pub(crate) fn take(
        &mut self,
        service: &Service,
        now: Time,
        from: IpAddr,
        wanted: (Option<u64>, Option<Span>),
    ) -> Result<Share, String> {
        let most = Share { bytes: service.peer_bytes, time: service.peer_time };
        let window = service.peer_window;
        // Who asks for no amount needs something to be left.
        let wants = Share { bytes: wanted.0.unwrap_or(1), time: wanted.1.unwrap_or(Span::from_millis(1)) };
        let too_much = |left: Share| match wants.bytes > left.bytes {
            true => Some((Bytes::new(most.bytes).to_string(), Bytes::new(left.bytes / 1000 * 1000).to_string())),
            false if wants.time > left.time => {
                let whole = left.time.as_nanos() / 1_000_000_000;
                Some((most.time.to_string(), Span::from_secs(whole).to_string()))
            }
            false => None,
        };
        let whose = service.whose(from);
        if let Some((all, _)) = too_much(most) {
            return Err(format!("{whose} may have {all} of transfers in {window} here: ask for less"));
        }
        self.make_room();
        let peer = self.peers.entry(service.network(from)).or_default();
        peer.forget(now, window);
        let left = most.minus(peer.taken());
        if let Some((all, rest)) = too_much(left) {
            let again = match peer.again(wants, most, window) {
                Some(at) => format!("in {}", Span::from_secs(at.since(now).as_nanos().div_ceil(1_000_000_000))),
                None => "when transfers from there are over".to_owned(),
            };
            let has = format!("{whose} may have {all} of transfers in {window} here, of which {rest} are left");
            return Err(format!("{has}: come again {again}"));
        }
        let share = Share {
            bytes: wanted.0.unwrap_or(left.bytes.min(service.most_bytes)),
            time: wanted.1.unwrap_or(left.time.min(service.most_time)),
        };
        peer.runs = peer.runs.plus(share);
        peer.running += 1;
        Ok(share)
    }

    /// A transfer is over that had so much of its share.
    pub(crate) fn over(&mut self, service: &Service, now: Time, from: IpAddr, share: Share, had: Share) {
        let Some(peer) = self.peers.get_mut(&service.network(from)) else { return };
        peer.runs = peer.runs.minus(share);
        peer.running = peer.running.saturating_sub(1);
        match peer.had.back_mut() {
            Some(step) if now.since(step.first) < service.peer_window / STEPS => {
                (step.last, step.had) = (now, step.had.plus(had));
            }
            _ => peer.had.push_back(Step { first: now, last: now, had }),
        }
    }

    fn make_room(&mut self) {
        if self.peers.len() < MOST_PEERS {
            return;
        }
        let idle = self.peers.iter().filter(|(_, peer)| peer.running == 0);
        let oldest = idle.min_by_key(|(_, peer)| peer.had.back().map(|step| step.last)).map(|(address, _)| *address);
        if let Some(oldest) = oldest {
            self.peers.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn what_was_had_is_forgotten_an_hour_later_and_what_runs_counts_in_full() {
        let service = Service { peer_bytes: 10_000_000, peer_time: Span::from_secs(100), ..Service::default() };
        let mut all = Allowances::default();
        let [here, there] = ["2001:db8::1", "2001:db8:0:1::1"].map(|text| text.parse::<IpAddr>().unwrap());
        let first = all.take(&service, at(0), here, (Some(6_000_000), None)).unwrap();
        assert_eq!(first, Share { bytes: 6_000_000, time: Span::from_secs(60) });
        let why = all.take(&service, at(1), "2001:db8::2".parse().unwrap(), (Some(5_000_000), None)).unwrap_err();
        assert!(why.contains("of which 4 MB are left: come again when transfers from there are over"), "{why}");
        assert!(all.take(&service, at(1), there, (Some(5_000_000), None)).is_ok(), "another network");
        all.over(&service, at(10), here, first, Share { bytes: 6_000_000, time: Span::from_secs(10) });
        let why = all.take(&service, at(70), here, (Some(5_000_000), None)).unwrap_err();
        assert!(why.contains("4 MB are left: come again in 3540 s"), "{why}");
        let second = all.take(&service, at(80), here, (None, Some(Span::from_secs(20)))).unwrap();
        assert_eq!(second, Share { bytes: 4_000_000, time: Span::from_secs(20) });
        all.over(&service, at(100), here, second, Share { bytes: 1_000_000, time: Span::from_secs(20) });
        let why = all.take(&service, at(200), here, (None, Some(Span::from_secs(71)))).unwrap_err();
        assert!(why.contains("come again in 3410 s"), "{why}");
        let why = all.take(&service, at(200), here, (None, Some(Span::from_secs(101)))).unwrap_err();
        assert!(why.ends_with("may have 100 s of transfers in 3600 s here: ask for less"), "{why}");
        assert!(all.take(&service, at(3611), here, (Some(9_000_000), Some(Span::from_secs(80)))).is_ok());
    }

    #[test]
    fn peers_that_are_remembered_are_limited_and_none_goes_that_has_a_transfer() {
        let service = Service::default();
        let mut all = Allowances::default();
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        let share = all.take(&service, at(0), address(0), (Some(1), None)).unwrap();
        for n in 1..MOST_PEERS as u32 + 10 {
            let share = all.take(&service, at(1), address(n), (Some(1), None)).unwrap();
            all.over(&service, at(1), address(n), share, share);
        }
        assert_eq!(all.peers.len(), MOST_PEERS);
        all.over(&service, at(2), address(0), share, share);
        assert_eq!(all.peers[&address(0)].running, 0);
    }
}
