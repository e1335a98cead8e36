// Limits mails of a user by Envoy's rate limit service over gRPC.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// mayMail returns true if the user may send a mail, and else the time to wait.
func mayMail(tidegate ratelimit.RateLimitServiceClient, user string) (bool, time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
	defer cancel()
	response, err := tidegate.ShouldRateLimit(ctx, &ratelimit.RateLimitRequest{
		Domain: "mail",
		Descriptors: []*common.RateLimitDescriptor{{
			Entries: []*common.RateLimitDescriptor_Entry{{Key: "user", Value: user}},
		}},
	})
	if err != nil {
		return false, 0, err
	}
	status := response.Statuses[0]
	allowed := response.OverallCode == ratelimit.RateLimitResponse_OK
	return allowed, status.DurationUntilReset.AsDuration(), nil
}

func main() {
	address := cmp.Or(os.Getenv("TIDEGATE_GRPC"), "127.0.0.1:8081")
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	tidegate := ratelimit.NewRateLimitServiceClient(connection)
	for mail := 1; mail <= 3; mail++ {
		allowed, wait, err := mayMail(tidegate, "ann")
		switch {
		case err != nil:
			log.Fatal(err)
		case allowed:
			fmt.Printf("mail %d: sent\n", mail)
		default:
			fmt.Printf("mail %d: wait %s\n", mail, wait)
		}
	}
}
