//! How long it takes, for whoever wants to know: `cargo test --release -- --ignored --nocapture
//! the_time_of_a_usual_head`.

use super::Reader;
use crate::telemetry::stopwatch::Stopwatch;
use std::hint::black_box;

const CURL: &str = "GET /api/orders/17 HTTP/1.1\r\nHost: shop.example.com\r\nUser-Agent: curl/8.5.0\r\n\
                    Accept: */*\r\n\r\n";

const BROWSER: &str = "GET /api/orders?page=2&sort=created HTTP/1.1\r\nHost: shop.example.com\r\n\
     Connection: keep-alive\r\nsec-ch-ua: \"Chromium\";v=\"124\", \"Not-A.Brand\";v=\"99\"\r\n\
     Accept: application/json, text/plain, */*\r\nsec-ch-ua-mobile: ?0\r\n\
     User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
     Chrome/124.0.0.0 Safari/537.36\r\nsec-ch-ua-platform: \"Linux\"\r\n\
     Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n\
     Referer: https://shop.example.com/orders\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
     Accept-Language: en-US,en;q=0.9\r\nCookie: session=0123456789abcdef0123456789abcdef; \
     theme=dark; _ga=GA1.2.1234567890.1234567890\r\n\r\n";

#[test]
#[ignore = "measures"]
fn the_time_of_a_usual_head() {
    const TIMES: u32 = 1_000_000;
    for (name, request) in [("curl", CURL), ("browser", BROWSER)] {
        let mut reader = Reader::default();
        let watch = Stopwatch::start();
        for _ in 0..TIMES {
            reader.read(black_box(request.as_bytes())).unwrap();
        }
        let each = watch.elapsed() / TIMES;
        println!("{name}: {} bytes in {each:?}", request.len());
        assert_eq!(reader.heads(), u64::from(TIMES));
    }
}
