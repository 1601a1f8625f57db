//! [`Start`] as a [`FlowStart`].

use flowstart_control::{FlowStart, forward_start};

use crate::Start;

macro_rules! whichever_it_is {
    ($this:ident.$method:ident($($argument:ident),*)) => { with_start!($this, it => it.$method($($argument),*)) };
}

impl FlowStart for Start {
    forward_start!(whichever_it_is);
}
