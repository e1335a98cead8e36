// A client of Tidegate: checks a request, and says how to respond if it may not pass.

// Tidegate reads 64 KiB. A request that it cannot read must not look like Tidegate being down.
const QUESTION_MAX = 16_384;

/** Checks requests. `fetch` of Node reuses connections. */
export class Tidegate {
  constructor(url, { policy, timeout = 250, failOpen = true, token } = {}) {
    this.url = new URL('/v1/check', url);
    this.policy = policy;
    this.timeout = timeout;
    this.failOpen = failOpen;
    this.headers = { 'content-type': 'application/json' };
    if (token) this.headers.authorization = `Bearer ${token}`;
  }

  /**
   * Returns `{ headers }` for the response if the request may pass, else `{ headers, status, body }` to
   * respond with.
   */
  async check(facts) {
    const question = JSON.stringify({ policy: this.policy, ...facts });
    if (question.length > QUESTION_MAX) return tooLarge();
    let response, text;
    try {
      response = await fetch(this.url, {
        method: 'POST',
        headers: this.headers,
        body: question,
        signal: AbortSignal.timeout(this.timeout),
      });
      text = await response.text();
    } catch (error) {
      // Tidegate did not respond in time: the switch decides.
      console.warn(`tidegate does not respond: ${error.cause ?? error}`);
      return this.failOpen ? { headers: {} } : unavailable();
    }
    if (response.status !== 200) {
      // Tidegate responded, and has no decision: a wrong policy or token, a request that is too large, or
      // `on_failure: error`. Never open: clients could cause some of these.
      console.error(`tidegate: ${response.status} ${text}`);
      return unavailable();
    }
    const decision = JSON.parse(text);
    const headers = limitHeaders(decision);
    if (decision.allowed) return { headers };
    // Tidegate's store is down: no limit was exceeded.
    if (decision.decided_by === 'failure') return unavailable();
    if (decision.retry_after_ms != null) headers['retry-after'] = String(seconds(decision.retry_after_ms));
    return problem(429, 'Too Many Requests', 'Rate limit exceeded.', headers);
  }
}

/** Middleware for Express. */
export function express(tidegate) {
  return async (request, response, next) => {
    const { headers, status, body } = await tidegate.check({
      ip: request.ip,
      method: request.method,
      path: request.originalUrl,
    });
    response.set(headers);
    if (status) return response.status(status).send(body);
    next();
  };
}

/** A hook for Fastify: `fastify.addHook('onRequest', hook(tidegate))`. */
export function hook(tidegate) {
  return async (request, reply) => {
    const { headers, status, body } = await tidegate.check({
      ip: request.ip,
      method: request.method,
      path: request.url,
    });
    reply.headers(headers);
    if (status) return reply.code(status).send(body);
  };
}

/** `RateLimit`, as in draft 11 of the header fields; nothing if no limit applied. */
function limitHeaders({ allowed, limit, remaining, reset_ms, retry_after_ms }) {
  if (limit == null || remaining == null) return {};
  const wait = allowed ? reset_ms : retry_after_ms;
  const reset = wait == null ? '' : `;t=${seconds(wait)}`;
  return { ratelimit: `"${limit}";r=${remaining}${reset}` };
}

function unavailable() {
  return problem(503, 'Service Unavailable', 'Try again in 1 second.', { 'retry-after': '1' });
}

function tooLarge() {
  return problem(431, 'Request Header Fields Too Large', 'The request is too large.', {});
}

function problem(status, title, detail, headers) {
  return {
    headers: { ...headers, 'content-type': 'application/problem+json' },
    status,
    body: JSON.stringify({ type: 'about:blank', title, status, detail }),
  };
}

function seconds(milliseconds) {
  return Math.ceil(milliseconds / 1000);
}
