// Package traefik is a middleware for Traefik that asks Tidegate whether a request may pass.
//
// It counts nothing itself: every replica of Traefik asks the same question, so limits hold over
// all of them. Beside what Traefik's own forwardAuth does, it shows allowed clients their limits,
// waits only so long, and does what the operator chose when Tidegate does not answer.
//
// Traefik interprets it with Yaegi, which is not quite Go. Beside what the rest of the file says: no
// dependency, no errors.As for types of our own, and in a switch without a value one expression a
// case, for it passes over the others.
package traefik

import (
	"context"
	"fmt"
	"net/http"
)

// gate is the middleware: one for each router that uses it, until the next change of Traefik's
// configuration.
type gate struct {
	next     http.Handler
	settings settings
	trouble  *trouble
}

// New is called by Traefik. A setting that makes no sense is an error here, and the router that
// uses it does not serve.
func New(_ context.Context, next http.Handler, config *Config, name string) (http.Handler, error) {
	settings, err := config.settings()
	if err != nil {
		return nil, fmt.Errorf("middleware %s: %w", name, err)
	}
	config.Keeper().announce(name)
	return &gate{next: next, settings: settings, trouble: newTrouble(name)}, nil
}

func (g *gate) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	question, err := g.settings.question(req)
	if err != nil {
		// The request's own fault. To let it pass would be a way around every limit.
		write(rw, http.StatusRequestHeaderFieldsTooLarge, err.Error())
		return
	}
	answer := g.settings.ask(req.Context(), question)
	if req.Context().Err() != nil {
		return // The client has gone: nobody is there to be answered.
	}
	switch answer.verdict {
	case allowed:
		g.trouble.over()
		answer.inform(rw.Header())
		g.next.ServeHTTP(rw, req)
	case refused:
		g.trouble.over()
		answer.pass(rw)
	case unreadable:
		// The client may have seen to that, so it is no reason to let it pass.
		g.trouble.mention(answer.reason)
		answer.pass(rw)
	default:
		g.undecided(rw, req, answer.reason)
	}
}

// undecided does what the operator chose for the time when Tidegate does not answer.
func (g *gate) undecided(rw http.ResponseWriter, req *http.Request, reason string) {
	if g.settings.open {
		g.trouble.note(reason, "let through without a limit")
		g.next.ServeHTTP(rw, req)
		return
	}
	g.trouble.note(reason, "refused with 503")
	rw.Header().Set("Retry-After", "1")
	write(rw, http.StatusServiceUnavailable, "The limiter cannot decide at the moment. Try again in 1 second.")
}
