//! Headers that only trusted proxies may send to upstreams.

/// Request headers, in lower case, that many applications and frameworks obey although any client can
/// write them: a different path, a different method, a different host, a client address, or the variable
/// `HTTP_PROXY` of a CGI program.
///
/// A gateway removes them from the requests of untrusted clients, except those in
/// [`Route::pass_headers`](super::Route::pass_headers). `X-Forwarded-For` and others of that prefix,
/// `Forwarded`, `Via` and `X-Real-IP` are not among them: the gateway writes those itself.
pub const CLIENT_CLAIMS: [&str; 18] = [
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "client-ip",
    "fastly-client-ip",
    "forwarded-for",
    "proxy",
    "true-client-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-forwarded",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-forwarded-for",
    "x-original-host",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
];
