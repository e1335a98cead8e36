package traefik

import (
	"errors"
	"net"
	"net/http"
	"net/textproto"
	"strings"
)

// What Tidegate reads of a request's head is bounded, at 16 KiB and 100 lines. A request beyond that
// is refused here: half sent, it would look like a Tidegate that is away.
const (
	headBytesMax = 15 << 10
	headLinesMax = 90
)

var errHeadTooLarge = errors.New("The headers of this request are too large.")

// question is what Tidegate is told of a request.
//
// All that says who asks, and what for, comes from the connection and the request line as Traefik has
// them. A client's own word for it is dropped, with one exception: the peer is appended to its
// X-Forwarded-For, as proxies do. Tidegate reads that from the right, past trusted addresses only.
func (s settings) question(req *http.Request) (http.Header, error) {
	told := http.Header{}
	if s.forward == nil {
		dropped := connectionOptions(req.Header)
		for name, values := range req.Header {
			if mayForward(name) && !dropped[name] {
				told[name] = values
			}
		}
	} else {
		for _, name := range s.forward {
			if values, ok := req.Header[name]; ok {
				told[name] = values
			}
		}
	}
	if _, ok := told["User-Agent"]; !ok {
		// Else the client library would put its own there.
		told.Set("User-Agent", "")
	}
	told.Set("X-Forwarded-Method", req.Method)
	told.Set("X-Forwarded-Uri", req.URL.RequestURI())
	told.Set("X-Forwarded-Host", req.Host)
	told.Set("X-Forwarded-Proto", scheme(req))
	if chain := forwardedFor(req); chain != "" {
		told.Set("X-Forwarded-For", chain)
	}
	return told, fits(told)
}

// Headers of a client, by their canonical names, that never go along.
var ownOfRequest = map[string]bool{
	// They end at Traefik.
	"Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	// The question has no body, and a host of its own.
	"Content-Length": true, "Expect": true, "Host": true,
	// Only proxies may say it, and X-Forwarded-For does.
	"Forwarded": true, "X-Real-Ip": true,
}

// mayForward tells whether a header of the client's may go along.
func mayForward(name string) bool {
	return !ownOfRequest[name] && !strings.HasPrefix(name, "X-Forwarded-") && !strings.HasPrefix(name, "X-Original-")
}

// connectionOptions are the headers that the client meant for Traefik alone.
func connectionOptions(header http.Header) map[string]bool {
	var named map[string]bool
	for _, line := range header["Connection"] {
		for _, name := range strings.Split(line, ",") {
			if name = textproto.TrimString(name); name != "" {
				if named == nil {
					named = map[string]bool{}
				}
				named[http.CanonicalHeaderKey(name)] = true
			}
		}
	}
	return named
}

// forwardedFor is where the request has come along, the peer last. Without a peer there is nothing to
// vouch for the rest, and it is empty.
func forwardedFor(req *http.Request) string {
	peer, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		return ""
	}
	peer, _, _ = strings.Cut(peer, "%") // The zone of a link-local address.
	if net.ParseIP(peer) == nil {
		return ""
	}
	if prior := req.Header["X-Forwarded-For"]; len(prior) > 0 {
		return strings.Join(prior, ", ") + ", " + peer
	}
	return peer
}

func scheme(req *http.Request) string {
	if req.TLS != nil {
		return "https"
	}
	return "http"
}

func fits(header http.Header) error {
	bytes, lines := 0, 0
	for name, values := range header {
		for _, value := range values {
			bytes += len(name) + len(value) + len(": \r\n")
			lines++
		}
	}
	if bytes > headBytesMax || lines > headLinesMax {
		return errHeadTooLarge
	}
	return nil
}
