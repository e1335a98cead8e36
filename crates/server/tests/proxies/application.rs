//! What the application answers is the client's, whatever it is.

use crate::kit::application::ANSWER_WITH;
use crate::kit::{Away, Setup, Site};

/// Also statuses that Tidegate or the proxy might have answered themselves.
fn statuses_are_left_as_they_are(setup: Setup) {
    let Some(site) = Site::open(setup, Away::Open) else {
        return;
    };
    let statuses = [401, 403, 404, 429, 500, 502, 503, 504];
    for (client, status) in (10..).zip(statuses) {
        let reply = site.ask(client, "POST /a", &[&format!("{ANSWER_WITH}: {status}")]);
        assert_eq!(reply.status, status);
        assert_eq!(reply.body, "application: POST /a");
    }
    assert_eq!(site.application.asked(), ["POST /a"; 8]);
}

with_all!(statuses_are_left_as_they_are);

/// An application that dies over a request gets it once, whether Tidegate is there or not.
fn a_request_goes_to_the_application_once(setup: Setup) {
    let Some(mut site) = Site::open(setup, Away::Open) else {
        return;
    };
    let dies = format!("{ANSWER_WITH}: nothing");
    let reply = site.ask(2, "POST /a", &[&dies]);
    assert_eq!(reply.status, 502, "{reply:?}");
    assert_eq!(site.application.asked(), ["POST /a"]);
    if setup.informs() {
        site.tidegate.go();
        let reply = site.ask(2, "POST /a", &[&dies]);
        assert_eq!(reply.status, 502, "{reply:?}");
        assert_eq!(site.application.asked(), ["POST /a"]);
    }
}

with_all!(a_request_goes_to_the_application_once);
