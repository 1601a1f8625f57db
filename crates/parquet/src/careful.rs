//! The library that reads Apache Parquet panics on some files that are none (fuzzing found it: a
//! column that begins before the file). Here that is an error like others.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is about to become an error, of which nothing is printed.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// What `read` returns, or the words of its panic. Panics of other threads, and of this one
/// elsewhere, are told as before.
///
/// What `read` has changed before it panicked must not be used again.
pub(crate) fn carefully<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !EXPECTED.get() {
                usual(panic);
            }
        }));
    });
    let before = EXPECTED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(read));
    EXPECTED.set(before);
    result.map_err(|panic| words(&*panic).to_owned())
}

/// What was said with a panic.
fn words(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("the file is damaged")
}
