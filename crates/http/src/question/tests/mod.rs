mod forwarded;
mod question;

use http::{HeaderMap, HeaderName, HeaderValue};

fn headers(pairs: &[(&'static str, &[u8])]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let value = HeaderValue::from_bytes(value).expect("a value");
        headers.append(HeaderName::from_static(name), value);
    }
    headers
}
