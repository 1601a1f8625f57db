//! What is written into the streams, and when.

use flowstart_congestion::Departure;
use flowstart_congestion::detection::PairDetector;
use flowstart_units::{Span, Time};

use super::lane::{Lane, piece_of};
use super::{PIECE, Sending};
use crate::connection::Connection;
use crate::data::{PIECE_HEADER, unreadable};
use crate::failed::Failed;

/// Bytes of a packet that are not application data: short header, number, tag, stream frame.
const OVERHEAD: u64 = 56;
/// Packets that are ready to leave at least: with fewer they would not be full.
const READY_PACKETS: u64 = 3;
/// What a transfer for a time writes at once leaves in so long, unless that is less than a packet:
/// it is to end at its time, and what is written leaves even so. (own choice: a twentieth of a
/// second more is not seen)
const AHEAD: Span = Span::from_millis(50);

impl Sending {
    /// When an application that is paced writes its next message.
    pub(super) fn next_message(&self, began: Time) -> Option<Time> {
        let paced = self.paced?;
        began.checked_add(Span::from_nanos(paced.gap.checked_mul(self.next / paced.message)?))
    }

    /// Bytes that the application has written by now.
    pub(super) fn written(&self, now: Time) -> u64 {
        let (Some(paced), Some(began)) = (self.paced, self.began) else { return u64::MAX };
        (now.since(began).as_nanos() / paced.gap).saturating_add(1).saturating_mul(paced.message)
    }

    /// Bytes that leave in a short time, as far as is known, if it is to end at its time.
    pub(super) fn leaves_soon(&self, now: Time, connection: &Connection) -> usize {
        // Messages are pieces of their own.
        let (true, None, Some(began), Some(ledger)) = (self.timed, self.paced, self.began, connection.ledger()) else {
            return PIECE;
        };
        let within = |packets: u64, time: Span| match time.as_nanos() {
            0 => 0,
            nanos => u128::from(packets) * u128::from(ledger.mtu()) * u128::from(AHEAD.as_nanos()) / u128::from(nanos),
        };
        // A path that has become slower has a smaller window, one that is slow has delivered less.
        let delivered = within(ledger.counts().delivered, now.since(began));
        let least = delivered.min(within(u64::from(ledger.controller().cwnd()), ledger.srtt()));
        usize::try_from(least).map_or(PIECE, |least| least.min(PIECE))
    }

    /// Writes pieces until enough is ready, or all streams are over.
    pub(super) fn refill(
        &mut self,
        now: Time,
        over: bool,
        number: usize,
        connection: &mut Connection,
        exhausted: bool,
    ) -> bool {
        let Some((sent, mtu)) = connection.ledger().map(|ledger| (ledger.sent_for_good(), u64::from(ledger.mtu())))
        else {
            return false;
        };
        let paired = self.lanes.len() > 1;
        let decided = self.told.is_some();
        let looking = paired && decided && number == 1;
        let asked = looking && self.detector.as_mut().is_some_and(|it| it.departure(1, now) != Departure::Hold);
        let written = self.written(now);
        self.fed = now;
        let soon = self.leaves_soon(now, connection);
        let waits = self.look.as_mut().is_some_and(|look| look.waits(number, now));
        let lane = &mut self.lanes[number];
        if exhausted {
            lane.emptied = (lane.written, sent);
        }
        let mut wrote = Self::flush(lane, connection);
        if !over && number > 0 && self.look.as_mut().is_some_and(|look| look.asks(now, lane.ready(sent) == 0)) {
            connection.ping();
            wrote = true;
        }
        let wanted = match looking {
            // What this connection sends beyond what the detector asks for would come late.
            true => u64::from(asked),
            false if waits => 0,
            // Nor has it much left when the detector has decided.
            false if number > 0 && self.look.is_some() => 1,
            false => READY_PACKETS * mtu,
        };
        while !over && !lane.closed && lane.left.iter().all(Vec::is_empty) && lane.ready(sent) < wanted {
            // A detector asks for single packets.
            let single = looking || (paired && !decided);
            let packet = (mtu - OVERHEAD) as usize - PIECE_HEADER;
            let most = if single { packet } else { soon.max(packet) };
            let left = self.size.unwrap_or(u64::MAX).min(written).saturating_sub(self.next);
            let length = piece_of(most, left);
            if length == 0 {
                break;
            }
            let retired = lane.retired.len();
            let turn = lane.next(connection);
            // The end of a stream is something to send, too.
            wrote |= lane.retired.len() > retired;
            let Some(turn) = turn else { break };
            lane.turn = turn;
            let mut piece = Vec::with_capacity(length + PIECE_HEADER);
            piece.extend_from_slice(&self.next.to_be_bytes());
            piece.extend_from_slice(&(length as u32).to_be_bytes());
            if let Err(error) = self.source.read(self.next, length, &mut piece) {
                self.fault = Some(Failed::file(unreadable(&error)));
                return wrote;
            }
            self.next += length as u64;
            if self.size == Some(self.next)
                && let Some(fault) = self.source.fault()
            {
                // The last piece does not leave: who has all of them takes them for the file.
                self.fault = Some(Failed::file(fault));
                return wrote;
            }
            if let (Some(ends), Some(paced)) = (&mut lane.ends, self.paced) {
                ends.wrote(lane.streams[turn].into(), self.next - length as u64..self.next, paced.message);
            }
            lane.left[turn] = piece;
            wrote |= Self::flush(lane, connection);
        }
        let unsent = lane.ready(sent) > 0 || lane.left.iter().any(|left| !left.is_empty());
        if !over
            && number == 0
            && !unsent
            && self.next >= written
            && let Some(detector) = &mut self.detector
        {
            detector.on_exhausted(now);
        }
        let lane_over = over || (looking && !self.detector.as_ref().is_some_and(PairDetector::watches));
        if lane_over && !lane.closed && lane.left.iter().all(Vec::is_empty) {
            lane.closed = true;
            lane.streams.iter().for_each(|stream| connection.finish(*stream));
            wrote = true;
        }
        wrote
    }

    pub(super) fn flush(lane: &mut Lane, connection: &mut Connection) -> bool {
        let mut wrote = false;
        for ((stream, left), carried) in lane.streams.iter().zip(&mut lane.left).zip(&mut lane.carried) {
            if left.is_empty() {
                continue;
            }
            let took = connection.write(*stream, left);
            left.drain(..took);
            *carried += took as u64;
            lane.written += took as u64;
            wrote |= took > 0;
        }
        wrote
    }
}
