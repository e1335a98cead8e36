// Limits jobs of a worker through the Redis protocol, by ioredis.
import { Redis } from 'ioredis';

const tidegate = new Redis(process.env.TIDEGATE_RESP ?? 'redis://127.0.0.1:6380', {
  commandTimeout: 250,
  maxRetriesPerRequest: 1,
});

// Returns 0 if the job may run, else the seconds to wait.
async function waitBefore(key, burst, count, period) {
  const [limited, , , retryAfter] = await tidegate.call('CL.THROTTLE', key, burst, count, period);
  return limited ? retryAfter : 0;
}

// Three jobs at once, then one a minute.
for (let job = 1; job <= 4; job++) {
  const wait = await waitBefore('jobs:javascript', 2, 1, 60);
  console.log(`job ${job}: ${wait ? `wait ${wait} s` : 'run'}`);
}
tidegate.disconnect();
