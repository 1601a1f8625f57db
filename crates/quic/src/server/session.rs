//! A transfer that the server takes part in.

use std::net::SocketAddr;

use flowstart_units::{Span, Time};

use crate::allowance::{Allowances, Share};
use crate::data::Receiving;
use crate::learning::Observed;
use crate::message::Report;
use crate::sending::Sending;
use crate::service::Service;
use crate::telling::Telling;

/// How much longer than a transfer may take those who send to the server may, and how long nothing
/// of what is under way then may arrive.
pub(super) const LATER: Span = Span::from_secs(10);

/// A transfer, with one connection or two.
#[derive(Debug)]
pub(super) struct Session {
    /// Connections by their place in the transfer.
    pub(super) members: [Option<usize>; 2],
    pub(super) wanted: usize,
    pub(super) peer: SocketAddr,
    pub(super) began: Time,
    pub(super) sending: Option<Sending>,
    pub(super) receiving: Option<Receiving>,
    /// The other end looks at the path: every packet counts by itself.
    pub(super) look: bool,
    /// Of what is read, for a sender that wants to know.
    pub(super) telling: Option<Telling>,
    pub(super) peer_report: Option<Box<Report>>,
    pub(super) told: bool,
    pub(super) begun: bool,
    /// What the memory said of the path.
    pub(super) resumed: Option<Observed>,
    /// What its peer was allowed for it; none once it is reckoned up.
    pub(super) share: Option<Share>,
    /// Nothing new leaves when its time is over: what is under way then is waited for.
    pub(super) drains: bool,
    /// When it was looked at last whether it goes on after its time, and how much had arrived then.
    pub(super) checked: Option<(Time, u64)>,
}

impl Session {
    /// What it sends cannot be sent, and its client does not know.
    pub(super) fn is_to_be_refused(&self) -> bool {
        !self.told && self.sending.as_ref().is_some_and(|sending| sending.fault().is_some())
    }

    /// When it is to be looked at next whether it takes too long.
    pub(super) fn due(&self, most: Span) -> Time {
        self.checked.map_or(self.began + most, |(at, _)| at + LATER)
    }

    /// Whether it may go on although that time has come: what waits in queues arrives within as
    /// long again, for a start that doubles has no more waiting than it has delivered.
    pub(super) fn goes_on(&mut self, most: Span) -> bool {
        let (sent, read) =
            (self.sending.as_ref().map(Sending::delivered), self.receiving.as_ref().map(Receiving::taken));
        let (at, arrived) = (self.due(most), sent.or(read).unwrap_or(0));
        let last = self.began + most + most + LATER;
        let goes_on = self.checked.is_none_or(|(_, before)| self.drains && arrived > before && at < last);
        if goes_on {
            self.checked = Some((at, arrived));
        }
        goes_on
    }

    /// What it has had counts for its peer from now on, and its share no more.
    pub(super) fn reckon(&mut self, now: Time, service: &Service, allowances: &mut Allowances) {
        let Some(share) = self.share.take() else { return };
        let sent = self.sending.as_ref().map_or(0, Sending::offered);
        let received = self.receiving.as_ref().map_or(0, Receiving::taken);
        let had = Share { bytes: sent.saturating_add(received), time: now.since(self.began) };
        allowances.over(service, now, self.peer.ip(), share, had);
    }
}
