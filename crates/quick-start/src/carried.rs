//! An option on its way, as values instead of bytes: what a simulated packet carries.

use flowstart_units::{Rate, Span};

use crate::wire::{IpOption, TcpResponse};
use crate::{Nonce, RateCode, Receiver};

/// Rates that routers tell (RCP) are counted in this.
const RATE_UNIT_BPS: u64 = 1_000;

/// Round-trip times that senders tell routers (RCP) are counted in this, so that 6.5 s fit.
const RTT_UNIT: Span = Span::from_micros(100);

/// No router has said how fast the flow may be.
const NOBODY: u32 = u32::MAX;

/// Which option it is, and what is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    None,
    Request {
        nonce: Nonce,
        rate: RateCode,
        ip_ttl: u8,
        ttl: u8,
    },
    Report {
        nonce: Nonce,
        rate: RateCode,
        ip_ttl: u8,
    },
    /// The header of RCP.
    Share {
        /// Smallest rate of all routers so far, in kbit/s.
        rate: u32,
        /// Round-trip time of the flow in tenths of a millisecond; 0 if not known.
        rtt: u16,
        /// Routers so far that know nothing of it: what the TTL of IP fell by more than the
        /// header's own would.
        unaware: u8,
    },
}

/// What a packet asks the routers on its path for or tells them, as they have left it: the
/// Quick-Start option and the TTL of the IP header that it is compared with, or the header of RCP.
/// A Quick-Start request that was denied by zeroing is none: it is the same to everybody further on
/// (RFC 4782 section 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried(Kind);

impl Carried {
    /// No option.
    pub const NONE: Self = Self(Kind::None);

    /// This option, on a packet that leaves with `ip_ttl`; a request for nothing is none.
    #[must_use]
    pub fn new(option: &IpOption, ip_ttl: u8) -> Self {
        Self(match *option {
            IpOption::Request { rate, .. } if rate.is_zero() => Kind::None,
            IpOption::Request { rate, ttl, nonce } => Kind::Request { nonce, rate, ip_ttl, ttl },
            IpOption::Report { rate, nonce } => Kind::Report { nonce, rate, ip_ttl },
        })
    }

    /// The header of RCP (Dukkipati and McKeown 2006), in which every router on the path writes the
    /// rate that it has for each of its flows if that is less than what is there, and reads the
    /// round-trip time of the flow (`None` before the first sample).
    #[must_use]
    pub fn asking_for_share(rtt: Option<Span>) -> Self {
        let units = rtt.map_or(0, |rtt| (rtt.as_nanos() / RTT_UNIT.as_nanos()).max(1));
        Self(Kind::Share { rate: NOBODY, rtt: u16::try_from(units).unwrap_or(u16::MAX), unaware: 0 })
    }

    /// True if there is no option.
    #[must_use]
    #[inline]
    pub const fn is_none(&self) -> bool {
        matches!(self.0, Kind::None)
    }

    /// True if this is the header of RCP.
    #[must_use]
    #[inline]
    pub const fn asks_for_share(&self) -> bool {
        matches!(self.0, Kind::Share { .. })
    }

    /// The Quick-Start option as it is now, if there is one.
    #[must_use]
    pub fn option(&self) -> Option<IpOption> {
        match self.0 {
            Kind::None | Kind::Share { .. } => None,
            Kind::Request { nonce, rate, ttl, .. } => Some(IpOption::Request { rate, ttl, nonce }),
            Kind::Report { nonce, rate, .. } => Some(IpOption::Report { rate, nonce }),
        }
    }

    /// The rate that is asked for; zero if this is no Quick-Start request.
    #[must_use]
    #[inline]
    pub const fn asked(&self) -> RateCode {
        if let Kind::Request { rate, .. } = self.0 { rate } else { RateCode::ZERO }
    }

    /// TTL of the IP header; zero without a Quick-Start option.
    #[must_use]
    pub const fn ip_ttl(&self) -> u8 {
        match self.0 {
            Kind::Request { ip_ttl, .. } | Kind::Report { ip_ttl, .. } => ip_ttl,
            Kind::None | Kind::Share { .. } => 0,
        }
    }

    /// The round-trip time that RCP's header tells the routers, if it does.
    #[must_use]
    pub const fn rtt(&self) -> Option<Span> {
        match self.0 {
            Kind::Share { rtt, .. } if rtt > 0 => Some(Span::from_nanos(RTT_UNIT.as_nanos() * rtt as u64)),
            _ => None,
        }
    }

    /// A router forwards the packet and knows nothing of what it carries, or leaves it alone: the
    /// TTL of IP falls, the other does not.
    #[inline]
    pub fn pass_unaware(&mut self) {
        match &mut self.0 {
            Kind::None => {}
            Kind::Request { ip_ttl, .. } | Kind::Report { ip_ttl, .. } => *ip_ttl = ip_ttl.wrapping_sub(1),
            Kind::Share { unaware, .. } => *unaware = unaware.saturating_add(1),
        }
    }

    /// A router that knows Quick-Start forwards a request and allows `granted`; the nonce bits of
    /// the steps that it takes away become those of `random` (RFC 4782 section 3.3). Nothing but
    /// requests changes otherwise than by [`pass_unaware`](Self::pass_unaware).
    pub fn pass_aware(&mut self, granted: RateCode, random: u32) {
        self.pass_unaware();
        let Kind::Request { nonce, rate, ttl, .. } = &mut self.0 else { return };
        if granted.is_zero() {
            return self.deny();
        }
        *ttl = ttl.wrapping_sub(1);
        *nonce = nonce.lowered(*rate, granted, random);
        *rate = (*rate).min(granted);
    }

    /// A router that knows RCP forwards the packet and has `share` for each of its flows. Nothing
    /// but the header of RCP changes.
    pub fn pass_sharing(&mut self, share: Rate) {
        if let Kind::Share { rate, .. } = &mut self.0 {
            let units = (share.as_bps() / RATE_UNIT_BPS).max(1);
            *rate = (*rate).min(u32::try_from(units).unwrap_or(NOBODY - 1));
        }
    }

    /// Denies a Quick-Start request by zeroing, and takes the header of RCP away; nothing else
    /// changes.
    pub fn deny(&mut self) {
        if matches!(self.0, Kind::Request { .. } | Kind::Share { .. }) {
            *self = Self::NONE;
        }
    }

    /// What an honest receiver answers, if anything (RFC 4782 section 4.2).
    #[must_use]
    pub fn answer(&self) -> Option<TcpResponse> {
        let mut receiver = Receiver::new(None);
        receiver.on_packet(self.ip_ttl(), &self.option()?);
        receiver.response()
    }

    /// The rate that a receiver tells the sender, if all routers on the path know RCP.
    #[must_use]
    pub fn share(&self) -> Option<Rate> {
        match self.0 {
            Kind::Share { rate, unaware: 0, .. } if rate != NOBODY => {
                Some(Rate::from_bps(u64::from(rate) * RATE_UNIT_BPS))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Carried {
        let option = IpOption::Request { rate: RateCode::new(7).unwrap(), ttl: 0, nonce: Nonce::new(0x2aaa_aaaa) };
        Carried::new(&option, 64)
    }

    #[test]
    fn a_request_changes_as_its_bytes_do() {
        let mut request = asked();
        request.pass_aware(RateCode::new(6).unwrap(), 0x1000);
        assert_eq!(request.option().unwrap().to_ipv4(), [0x19, 8, 0x06, 0xff, 0xaa, 0xaa, 0x6a, 0xa8]);
        assert_eq!((request.ip_ttl(), request.answer().unwrap().ttl_difference), (63, 64));
        request.pass_aware(RateCode::MAX, 0);
        assert_eq!(request.asked().get(), 6, "no router raises a rate");
        request.pass_unaware();
        assert_eq!(request.answer().unwrap().ttl_difference, 63, "the sender sees that");
        request.pass_aware(RateCode::ZERO, 5);
        request.pass_unaware();
        assert_eq!((request, request.answer()), (Carried::NONE, None), "a denial is no option to anybody further on");
    }

    #[test]
    fn a_report_passes_unchanged_and_nothing_answers_it() {
        let option = IpOption::Report { rate: RateCode::new(6).unwrap(), nonce: Nonce::new(5) };
        let mut report = Carried::new(&option, 64);
        report.pass_aware(RateCode::ZERO, 9);
        report.deny();
        assert_eq!((report.option(), report.ip_ttl(), report.answer()), (Some(option), 63, None));
        assert!(report.asked().is_zero() && !report.is_none());
    }

    #[test]
    fn the_smallest_share_comes_back_in_steps_of_a_kilobit() {
        let mut header = Carried::asking_for_share(Some(Span::from_micros(100_350)));
        assert_eq!((header.rtt(), header.share()), (Some(Span::from_micros(100_300)), None), "no router has said");
        header.pass_sharing(Rate::from_mbps(20));
        header.pass_sharing(Rate::from_bps(10_000_999));
        header.pass_sharing(Rate::from_mbps(30));
        assert_eq!(header.share(), Some(Rate::from_mbps(10)));
        header.pass_sharing(Rate::ZERO);
        assert_eq!(header.share(), Some(Rate::from_bps(1000)), "never nothing");
        header.pass_aware(RateCode::MAX, 0);
        assert_eq!(header.share(), None, "a router that knows Quick-Start alone knows no shares");
        assert!(header.option().is_none() && header.answer().is_none() && header.asked().is_zero());
    }

    #[test]
    fn what_does_not_fit_into_the_header_is_the_most_that_does() {
        for (rtt, told) in [(0, 100), (99, 100), (10_000_000, 6_553_500)] {
            let header = Carried::asking_for_share(Some(Span::from_micros(rtt)));
            assert_eq!(header.rtt(), Some(Span::from_micros(told)));
        }
        let mut header = Carried::asking_for_share(None);
        header.pass_sharing(Rate::UNLIMITED);
        assert_eq!((header.rtt(), header.share()), (None, Some(Rate::from_bps(u64::from(u32::MAX - 1) * 1000))));
        header.deny();
        assert!(header.is_none());
    }

    #[test]
    fn what_every_packet_carries_is_eight_bytes() {
        assert_eq!(size_of::<Carried>(), 8);
    }
}
