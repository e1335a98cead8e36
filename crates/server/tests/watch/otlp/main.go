// Reads a body of OTLP in JSON, as the collector of OpenTelemetry reads it, and tells the spans in it.
package main

import (
	"fmt"
	"io"
	"os"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(body)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i := 0; i < traces.ResourceSpans().Len(); i++ {
		resource := traces.ResourceSpans().At(i)
		service, _ := resource.Resource().Attributes().Get("service.name")
		for j := 0; j < resource.ScopeSpans().Len(); j++ {
			spans := resource.ScopeSpans().At(j).Spans()
			for k := 0; k < spans.Len(); k++ {
				span := spans.At(k)
				fmt.Println(service.AsString(), span.TraceID(), span.SpanID(), span.ParentSpanID(),
					span.Kind(), span.EndTimestamp() > span.StartTimestamp(), span.Attributes().Len(), span.Name())
			}
		}
	}
}
