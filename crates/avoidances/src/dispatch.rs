//! [`Avoidance`] as a [`CongestionAvoidance`].

use flowstart_control::{CongestionAvoidance, forward_avoidance};

use crate::Avoidance;

macro_rules! whichever_it_is {
    ($this:ident.$method:ident($($argument:ident),*)) => { with_avoidance!($this, it => it.$method($($argument),*)) };
}

impl CongestionAvoidance for Avoidance {
    forward_avoidance!(whichever_it_is);
}
