//! The files that `flowstart new-algorithm` writes compile, and the tests in them pass. They are
//! taken in here with the names they have in the template.

#![allow(unreachable_pub)]

#[path = "../templates/algorithm/src/lib.rs"]
mod my_start;

mod program {
    #![allow(dead_code)]

    use super::my_start;

    include!("../templates/algorithm/src/main.rs");
}

include!("../templates/algorithm/tests/contract.rs");
