//! The page in the Prometheus text format, for clients that do not accept OpenMetrics.
//!
//! The formats differ in few points: in this one a counter is described under the name of its samples, an
//! info is a gauge, units are omitted, and there is no end marker.

use std::fmt::Write;

/// Converts a page of OpenMetrics to the older format.
pub fn of(page: &str) -> String {
    let mut plain = String::with_capacity(page.len());
    let mut help = None;
    for line in page.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            // The name depends on the type, which is on the next line.
            help = described.split_once(' ');
        } else if let Some(typed) = line.strip_prefix("# TYPE ") {
            let Some((name, kind)) = typed.split_once(' ') else {
                continue;
            };
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                _ => ("", kind),
            };
            let written = match help.take() {
                Some((_, help)) => writeln!(plain, "# HELP {name}{suffix} {help}"),
                None => Ok(()),
            };
            let written = written.and_then(|()| writeln!(plain, "# TYPE {name}{suffix} {kind}"));
            debug_assert!(written.is_ok(), "writing to a string");
        } else if !line.starts_with('#') {
            plain.push_str(line);
            plain.push('\n');
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn a_page_has_the_same_content_in_both_formats() {
        let page = "\
# HELP t_build Which version this is.
# TYPE t_build info
t_build_info{version=\"1\"} 1
# HELP t_decisions Decisions.
# TYPE t_decisions counter
t_decisions_total{policy=\"a\"} 5
# HELP t_age_seconds How old.
# TYPE t_age_seconds gauge
# UNIT t_age_seconds seconds
t_age_seconds 1.5
# HELP t_took_seconds How long.
# TYPE t_took_seconds histogram
# UNIT t_took_seconds seconds
t_took_seconds_sum 1
t_took_seconds_count 1
t_took_seconds_bucket{le=\"+Inf\"} 1
# EOF
";
        assert_eq!(
            of(page),
            "\
# HELP t_build_info Which version this is.
# TYPE t_build_info gauge
t_build_info{version=\"1\"} 1
# HELP t_decisions_total Decisions.
# TYPE t_decisions_total counter
t_decisions_total{policy=\"a\"} 5
# HELP t_age_seconds How old.
# TYPE t_age_seconds gauge
t_age_seconds 1.5
# HELP t_took_seconds How long.
# TYPE t_took_seconds histogram
t_took_seconds_sum 1
t_took_seconds_count 1
t_took_seconds_bucket{le=\"+Inf\"} 1
"
        );
    }
}
