//! When the kernel sent what an application wrote, said by the socket itself (`SO_TIMESTAMPING`,
//! Documentation/networking/timestamping.rst).

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::Duration;

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, TimestampingFlag, recvmsg, setsockopt, sockopt,
};

use flowstart_units::Time;

use super::{SocketStamp, StampedBy};
use crate::clock::Clock;

/// `SCM_TSTAMP_SND` and `SCM_TSTAMP_SCHED` of linux/errqueue.h.
const BY_DRIVER: u32 = 0;
const BY_SCHEDULER: u32 = 1;

/// What is asked of a TCP socket: stamps where a packet enters the queueing discipline and where
/// the driver has it, without the packet, named by the bytes that were written up to there.
///
/// Nothing else changes. TCP keeps the stamp of the last write in a buffer only, so writes that it
/// joins have one stamp; to mark the end of every record (`MSG_EOR`) would part them, and change
/// what is sent.
pub(super) struct Stamps {
    clock: Clock,
    /// Bytes that the latest write with a stamp ends at.
    highest: u64,
    found: Vec<SocketStamp>,
}

impl Stamps {
    /// Asks a connected socket on which nothing was written yet.
    pub(super) fn ask(socket: &std::net::TcpStream, clock: Clock) -> nix::Result<Self> {
        let flags = TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
            | TimestampingFlag::SOF_TIMESTAMPING_OPT_ID
            | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY
            | TimestampingFlag::from_bits_retain(libc::SOF_TIMESTAMPING_TX_SCHED);
        setsockopt(&socket.as_fd(), sockopt::Timestamping, &flags)?;
        Ok(Self { clock, highest: 0, found: Vec::new() })
    }

    /// Takes those that are there. A socket holds some hundred, and loses what comes after them.
    pub(super) fn take(&mut self, socket: &std::net::TcpStream) {
        let mut offset = None;
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let mut room = nix::cmsg_space!([libc::timespec; 3], libc::sock_extended_err, libc::sockaddr_in6);
        while let Ok(message) = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut [], Some(&mut room), flags) {
            let (mut stamp, mut of) = (None, None);
            for part in message.cmsgs().into_iter().flatten() {
                match part {
                    ControlMessageOwned::ScmTimestampsns(times) => stamp = Some(Duration::from(times.system)),
                    ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _)
                        if error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING =>
                    {
                        of = Some((error.ee_info, error.ee_data));
                    }
                    _ => {}
                }
            }
            let (Some(stamp), Some((kind, last))) = (stamp, of) else { continue };
            // Wall and monotonic clock are compared once for all that are there.
            let offset = *offset.get_or_insert_with(|| self.clock.wall_offset());
            let at = Time::from_nanos((stamp.as_nanos() as u64).saturating_sub(offset));
            self.add(kind, last, at);
        }
    }

    /// Adds a stamp of this kind for a write whose last byte has this number, modulo 2^32.
    fn add(&mut self, kind: u32, last: u32, at: Time) {
        let by = match kind {
            BY_DRIVER => StampedBy::Driver,
            BY_SCHEDULER => StampedBy::Scheduler,
            _ => return,
        };
        let end = last.wrapping_add(1);
        // No write that is stamped now is 2 GiB from the latest.
        let ahead = end.wrapping_sub(self.highest as u32) as i32;
        let Some(written) = self.highest.checked_add_signed(i64::from(ahead)) else { return };
        self.highest = self.highest.max(written);
        self.found.push(SocketStamp { written, by, at });
    }

    /// All that were found, in the order in which the kernel told them.
    pub(super) fn finish(self) -> Vec<SocketStamp> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_beyond_four_gibibytes_and_unknown_kinds_are_left_out() {
        let mut stamps = Stamps { clock: Clock::start(flowstart_units::Span::ZERO), highest: 0, found: Vec::new() };
        let at = Time::from_nanos;
        let step = 1_u64 << 30;
        for n in 1..=9 {
            stamps.add(BY_SCHEDULER, (n * step - 1) as u32, at(n));
        }
        // What was sent again is stamped again.
        stamps.add(BY_DRIVER, (8 * step - 1) as u32, at(10));
        stamps.add(2, (9 * step - 1) as u32, at(11));
        // The next is counted from the furthest, not from the last.
        stamps.add(BY_DRIVER, (10 * step - 1) as u32, at(12));
        let found = stamps.finish();
        let written: Vec<u64> = found.iter().map(|stamp| stamp.written / step).collect();
        assert_eq!(written, [1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 10]);
        assert_eq!((found[8].by, found[9].by), (StampedBy::Scheduler, StampedBy::Driver));
        assert_eq!(found[9].at, at(10));
    }
}
