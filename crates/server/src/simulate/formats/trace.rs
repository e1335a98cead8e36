//! Traces: one check request per line, with its time.

use crate::simulate::event::Event;
use crate::timestamps::LATEST;
use tidegate::Timestamp;
use tidegate_frontends::wire::fault::WireFault;
use tidegate_frontends::wire::json::JsonResult;

/// Parses one line of a trace into `event`, which must be empty.
#[inline]
pub fn read<'a>(line: &'a [u8], event: &mut Event<'a>) -> JsonResult<()> {
    let at_ms = event.question.read_at(line)?;
    event.at = Timestamp::from_millis(at_ms);
    if event.at > LATEST {
        let message = format!("{at_ms} milliseconds since the epoch is later than the year 2255");
        return Err(WireFault::new(0, message).within("at_ms"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_the_wrong_unit_is_noticed() {
        let mut event = Event::default();
        read(br#"{"at_ms": 1700000000123}"#, &mut event).expect("a valid line");
        assert_eq!(event.at, Timestamp::from_millis(1_700_000_000_123));
        let fault = read(br#"{"at_ms": 1700000000123456}"#, &mut Event::default());
        let fault = fault.expect_err("microseconds");
        assert!(
            fault.to_string().ends_with("is later than the year 2255"),
            "{fault}"
        );
    }
}
