package traefik

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

var dialer = &net.Dialer{Timeout: timeoutMax, KeepAlive: 30 * time.Second}

// Connections are shared by all middlewares and outlive them: Traefik makes middlewares anew at every
// change of its configuration.
var client = &http.Client{
	Transport: &http.Transport{
		// No proxy of the environment: Tidegate is near.
		Proxy: nil,
		// Not `dialer.DialContext`: the interpreter does not take a method for a function here.
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, address)
		},
		DisableCompression:     true,
		MaxConnsPerHost:        512,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    128,
		IdleConnTimeout:        60 * time.Second,
		TLSHandshakeTimeout:    timeoutMax,
		MaxResponseHeaderBytes: 64 << 10,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// ask asks Tidegate.
func (s settings) ask(ctx context.Context, question http.Header) answer {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nobody(err.Error())
	}
	request.Header = question
	response, err := client.Do(request)
	if err != nil {
		if ctx.Err() == context.DeadlineExceeded {
			return nobody(fmt.Sprintf("Tidegate has not answered within %s", s.timeout))
		}
		return nobody(err.Error())
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyBytesMax+1))
	if err != nil {
		return nobody(fmt.Sprintf("Tidegate's answer broke off: %v", err))
	}
	if len(body) > bodyBytesMax {
		return nobody(fmt.Sprintf("Tidegate's answer is longer than %d bytes", bodyBytesMax))
	}
	given := answer{status: response.StatusCode, header: response.Header, body: body}
	given.verdict, given.reason = judge(response.StatusCode, response.Header)
	return given
}

// nobody is the answer where there is none.
func nobody(reason string) answer {
	return answer{verdict: undecided, reason: reason}
}

// judge tells answers about the request from those about the operator's settings.
func judge(status int, header http.Header) (verdict, string) {
	// A policy's refusals may have any status from 400 on. All of them are marked, and nothing else is.
	if status >= 400 && header.Get(reasonHeader) == "limit" {
		return refused, ""
	}
	switch status {
	case http.StatusOK:
		return allowed, ""
	case http.StatusBadRequest:
		return unreadable, "Tidegate cannot read a question: it answers 400"
	case http.StatusRequestURITooLong:
		return unreadable, "Tidegate cannot read a question: it answers 414"
	case http.StatusRequestHeaderFieldsTooLarge:
		return unreadable, "Tidegate cannot read a question: it answers 431"
	case http.StatusUnauthorized:
		return undecided, "Tidegate answers 401: is `tidegateURL` its HTTP listener?"
	case http.StatusForbidden:
		// By the address of this connection alone, so no client can cause it.
		if header.Get(reasonHeader) == "untrusted-proxy" {
			return undecided, "Tidegate does not trust this Traefik: add its address to `client.trusted_proxies` there"
		}
		return refused, ""
	case http.StatusNotFound:
		return undecided, "Tidegate answers 404: does it have the policy that `policy` names, and is `tidegateURL` its HTTP listener?"
	case http.StatusServiceUnavailable:
		// Tidegate's own store is away, and its limits say to deny. Without the mark it is the word of
		// somebody between us, who has decided nothing: a load balancer without a Tidegate behind it.
		if header.Get(reasonHeader) == "unavailable" {
			return refused, ""
		}
		return undecided, "a 503 that is not marked as Tidegate's own: is it behind something that cannot reach it?"
	}
	if status >= 400 && status < 500 {
		return refused, ""
	}
	return undecided, fmt.Sprintf("Tidegate answers %d", status)
}
