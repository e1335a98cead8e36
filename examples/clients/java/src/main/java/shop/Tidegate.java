package shop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.logging.Logger;

/** A client of Tidegate: checks a request, and says how to respond if it may not pass. */
public final class Tidegate {
    private static final Logger LOG = Logger.getLogger("tidegate");
    private static final ObjectMapper JSON = new ObjectMapper();
    // Tidegate reads 64 KiB. A request that it cannot read must not look like Tidegate being down.
    private static final int QUESTION_MAX = 16_384;

    /** Headers for the response. With a status, send status and body instead of serving the request. */
    public record Verdict(Map<String, String> headers, int status, String body) {
        public boolean passes() {
            return status == 0;
        }
    }

    private final URI check;
    private final String policy;
    private final boolean failOpen;
    private final Duration timeout;
    private final HttpClient client;

    public Tidegate(String url, String policy, boolean failOpen, Duration timeout) {
        this.check = URI.create(url).resolve("/v1/check");
        this.policy = policy;
        this.failOpen = failOpen;
        this.timeout = timeout;
        // Reuses connections. Version 1.1, because the default tries to upgrade to HTTP/2.
        this.client = HttpClient.newBuilder()
                .version(HttpClient.Version.HTTP_1_1)
                .connectTimeout(timeout)
                .build();
    }

    public Verdict check(String ip, String method, String path) throws IOException, InterruptedException {
        String question =
                JSON.writeValueAsString(Map.of("policy", policy, "ip", ip, "method", method, "path", path));
        if (question.length() > QUESTION_MAX) {
            return problem(431, "Request Header Fields Too Large", "The request is too large.", new HashMap<>());
        }
        HttpRequest request = HttpRequest.newBuilder(check)
                .timeout(timeout)
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(question))
                .build();
        HttpResponse<String> response;
        try {
            response = client.send(request, HttpResponse.BodyHandlers.ofString());
        } catch (IOException error) {
            // Tidegate did not respond in time: the switch decides.
            LOG.warning("tidegate does not respond: " + error);
            return failOpen ? new Verdict(Map.of(), 0, "") : unavailable();
        }
        if (response.statusCode() != 200) {
            // Tidegate responded, and has no decision: a wrong policy or token, a request that is too
            // large, or `on_failure: error`. Never open: clients could cause some of these.
            LOG.severe("tidegate: " + response.statusCode() + " " + response.body());
            return unavailable();
        }
        return verdict(JSON.readTree(response.body()));
    }

    private static Verdict verdict(JsonNode decision) throws IOException {
        boolean allowed = decision.get("allowed").asBoolean();
        if (!allowed && decision.path("decided_by").asText().equals("failure")) {
            return unavailable(); // its store is down: no limit was exceeded
        }
        Map<String, String> headers = new HashMap<>();
        JsonNode wait = decision.path(allowed ? "reset_ms" : "retry_after_ms");
        if (decision.hasNonNull("limit") && decision.hasNonNull("remaining")) {
            // As in draft 11 of the header fields.
            String reset = wait.isNumber() ? ";t=" + seconds(wait) : "";
            String limit = decision.get("limit").asText();
            headers.put("RateLimit", '"' + limit + "\";r=" + decision.get("remaining") + reset);
        }
        if (allowed) {
            return new Verdict(headers, 0, "");
        }
        if (wait.isNumber()) {
            headers.put("Retry-After", Long.toString(seconds(wait)));
        }
        return problem(429, "Too Many Requests", "Rate limit exceeded.", headers);
    }

    private static Verdict unavailable() throws IOException {
        Map<String, String> headers = new HashMap<>(Map.of("Retry-After", "1"));
        return problem(503, "Service Unavailable", "Try again in 1 second.", headers);
    }

    private static Verdict problem(int status, String title, String detail, Map<String, String> headers)
            throws IOException {
        headers.put("Content-Type", "application/problem+json");
        Map<String, Object> body =
                Map.of("type", "about:blank", "title", title, "status", status, "detail", detail);
        return new Verdict(headers, status, JSON.writeValueAsString(body));
    }

    private static long seconds(JsonNode milliseconds) {
        return (milliseconds.asLong() + 999) / 1000;
    }
}
