// Limits jobs of a worker through the Redis protocol, by go-redis.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

// waitBefore returns 0 if the job may run, else the seconds to wait.
func waitBefore(tidegate *redis.Client, key string, burst, count, period int) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
	defer cancel()
	reply, err := tidegate.Do(ctx, "CL.THROTTLE", key, burst, count, period).Int64Slice()
	if err != nil || reply[0] == 0 {
		return 0, err
	}
	return reply[3], nil
}

func main() {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("TIDEGATE_RESP"), "redis://127.0.0.1:6380"))
	if err != nil {
		log.Fatal(err)
	}
	options.ContextTimeoutEnabled = true
	tidegate := redis.NewClient(options)
	// Three jobs at once, then one a minute.
	for job := 1; job <= 4; job++ {
		wait, err := waitBefore(tidegate, "jobs:go", 2, 1, 60)
		switch {
		case err != nil:
			log.Fatal(err)
		case wait > 0:
			fmt.Printf("job %d: wait %d s\n", job, wait)
		default:
			fmt.Printf("job %d: run\n", job)
		}
	}
}
