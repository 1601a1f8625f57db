//! An option on its way, as values instead of bytes: what a simulated packet carries.

use crate::wire::{IpOption, TcpResponse};
use crate::{Nonce, RateCode, Receiver};

/// Which option it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    None,
    Request,
    Report,
}

/// The Quick-Start option of a packet, and the TTL of the IP header that it is compared with. A
/// request that was denied by zeroing is none: it is the same to everybody further on (RFC 4782
/// section 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    nonce: Nonce,
    rate: RateCode,
    kind: Kind,
    ip_ttl: u8,
    ttl: u8,
}

impl Carried {
    /// No option.
    pub const NONE: Self = Self { nonce: Nonce::new(0), rate: RateCode::ZERO, kind: Kind::None, ip_ttl: 0, ttl: 0 };

    /// This option, on a packet that leaves with `ip_ttl`; a request for nothing is none.
    #[must_use]
    pub fn new(option: &IpOption, ip_ttl: u8) -> Self {
        match *option {
            IpOption::Request { rate, .. } if rate.is_zero() => Self::NONE,
            IpOption::Request { rate, ttl, nonce } => Self { nonce, rate, kind: Kind::Request, ip_ttl, ttl },
            IpOption::Report { rate, nonce } => Self { nonce, rate, kind: Kind::Report, ip_ttl, ttl: 0 },
        }
    }

    /// True if there is no option.
    #[must_use]
    #[inline]
    pub const fn is_none(&self) -> bool {
        matches!(self.kind, Kind::None)
    }

    /// The option as it is now, if there is one.
    #[must_use]
    pub fn option(&self) -> Option<IpOption> {
        match self.kind {
            Kind::None => None,
            Kind::Request => Some(IpOption::Request { rate: self.rate, ttl: self.ttl, nonce: self.nonce }),
            Kind::Report => Some(IpOption::Report { rate: self.rate, nonce: self.nonce }),
        }
    }

    /// The rate that is asked for; zero if this is no request.
    #[must_use]
    #[inline]
    pub const fn asked(&self) -> RateCode {
        if matches!(self.kind, Kind::Request) { self.rate } else { RateCode::ZERO }
    }

    /// TTL of the IP header; it means nothing without an option.
    #[must_use]
    pub const fn ip_ttl(&self) -> u8 {
        self.ip_ttl
    }

    /// A router forwards the packet and knows nothing of Quick-Start, or leaves the option alone:
    /// the TTL of IP falls, the other does not.
    #[inline]
    pub fn pass_unaware(&mut self) {
        if !self.is_none() {
            self.ip_ttl = self.ip_ttl.wrapping_sub(1);
        }
    }

    /// A router that knows Quick-Start forwards a request and allows `granted`; the nonce bits of
    /// the steps that it takes away become those of `random` (RFC 4782 section 3.3). Nothing but
    /// requests changes.
    pub fn pass_aware(&mut self, granted: RateCode, random: u32) {
        self.pass_unaware();
        if self.kind != Kind::Request {
            return;
        }
        if granted.is_zero() {
            return self.deny();
        }
        self.ttl = self.ttl.wrapping_sub(1);
        self.nonce = self.nonce.lowered(self.rate, granted, random);
        self.rate = self.rate.min(granted);
    }

    /// Denies a request by zeroing; nothing else changes.
    pub fn deny(&mut self) {
        if self.kind == Kind::Request {
            *self = Self::NONE;
        }
    }

    /// What an honest receiver answers, if anything (RFC 4782 section 4.2).
    #[must_use]
    pub fn answer(&self) -> Option<TcpResponse> {
        let mut receiver = Receiver::new(None);
        receiver.on_packet(self.ip_ttl, &self.option()?);
        receiver.response()
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
}
