// A shop with net/http. Start it with `go run ./shop`.
package main

import (
	"cmp"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"example.com/shop/tidegate"
)

func main() {
	timeout, err := time.ParseDuration(cmp.Or(os.Getenv("TIDEGATE_TIMEOUT_MS"), "250") + "ms")
	if err != nil {
		log.Fatal(err)
	}
	limiter := tidegate.New(cmp.Or(os.Getenv("TIDEGATE_URL"), "http://127.0.0.1:8080"), "shop", timeout)
	limiter.FailOpen = os.Getenv("TIDEGATE_FAIL") != "closed"

	mux := http.NewServeMux()
	mux.HandleFunc("GET /cart", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "application: GET /cart")
	})

	listener, err := net.Listen("tcp", "127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "3000"))
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("listening on http://%s", listener.Addr())
	log.Fatal(http.Serve(listener, limiter.Limit(mux)))
}
