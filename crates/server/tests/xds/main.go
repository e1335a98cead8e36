// An xDS server of Envoy's own library, which tests steer line by line.
//
// It reads commands on standard input, one JSON object per line, and prints what it sees. Each command sets
// the snapshot of one node:
//
//	{"node": "a", "version": "1", "resources": [{"name": "foo", "domain": "foo"}]}
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
)

type command struct {
	Node      string            `json:"node"`
	Version   string            `json:"version"`
	Resources []json.RawMessage `json:"resources"`
}

// Fields of a resource that the library does not know yet.
type domain struct {
	Descriptors []descriptor `json:"descriptors"`
}

type descriptor struct {
	QuotaMode   bool         `json:"quotaMode"`
	Descriptors []descriptor `json:"descriptors"`
}

// The field quota_mode, which is number 7, and true.
var quotaMode = []byte{7 << 3, 1}

func addQuotaMode(to []*ratelimit.RateLimitDescriptor, from []descriptor) {
	for i, newer := range from {
		if newer.QuotaMode {
			to[i].ProtoReflect().SetUnknown(quotaMode)
		}
		addQuotaMode(to[i].Descriptors, newer.Descriptors)
	}
}

func main() {
	address := flag.String("listen", "127.0.0.1:0", "address and port")
	cert := flag.String("cert", "", "certificate, for TLS")
	key := flag.String("key", "", "private key, for TLS")
	ca := flag.String("ca", "", "authority of client certificates")
	flag.Parse()
	if err := run(*address, *cert, *key, *ca); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address, cert, key, ca string) error {
	var options []grpc.ServerOption
	if cert != "" {
		config, err := tlsConfig(cert, key, ca)
		if err != nil {
			return err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	snapshots := cache.NewSnapshotCache(true, cache.IDHash{}, nil)
	seen := make(chan string, 1024)
	xds := server.NewServer(context.Background(), snapshots, server.CallbackFuncs{
		StreamOpenFunc: func(ctx context.Context, _ int64, _ string) error {
			headers, _ := metadata.FromIncomingContext(ctx)
			seen <- "open " + strings.Join(headers.Get("x-test"), ",")
			return nil
		},
		StreamRequestFunc: func(_ int64, request *discovery.DiscoveryRequest) error {
			line, err := protojson.Marshal(request)
			seen <- fmt.Sprintf("request %s", line)
			return err
		},
	})
	grpcServer := grpc.NewServer(options...)
	discovery.RegisterAggregatedDiscoveryServiceServer(grpcServer, xds)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("listening", listener.Addr())
	go func() {
		for line := range seen {
			fmt.Println(line)
		}
	}()
	go func() {
		if err := grpcServer.Serve(listener); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if err := obey(snapshots, lines.Bytes()); err != nil {
			return err
		}
		seen <- "set"
	}
	return lines.Err()
}

func obey(snapshots cache.SnapshotCache, line []byte) error {
	var command command
	if err := json.Unmarshal(line, &command); err != nil {
		return err
	}
	resources := []types.Resource{}
	for _, text := range command.Resources {
		config := &ratelimit.RateLimitConfig{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, config); err != nil {
			return err
		}
		var newer domain
		if err := json.Unmarshal(text, &newer); err != nil {
			return err
		}
		addQuotaMode(config.Descriptors, newer.Descriptors)
		resources = append(resources, config)
	}
	snapshot, err := cache.NewSnapshot(command.Version, map[resource.Type][]types.Resource{
		resource.RateLimitConfigType: resources,
	})
	if err != nil {
		return err
	}
	return snapshots.SetSnapshot(context.Background(), command.Node, snapshot)
}

func tlsConfig(cert, key, ca string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate", ca)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}
