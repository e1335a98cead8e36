// A shop in Fastify. Start it with `node fastify-shop.mjs`.
import createApp from 'fastify';
import { Tidegate, hook } from './tidegate.mjs';

const tidegate = new Tidegate(process.env.TIDEGATE_URL ?? 'http://127.0.0.1:8080', {
  policy: 'shop',
  timeout: Number(process.env.TIDEGATE_TIMEOUT_MS ?? 250),
  failOpen: process.env.TIDEGATE_FAIL !== 'closed',
});

const app = createApp();
app.addHook('onRequest', hook(tidegate));
app.get('/cart', (request, reply) => {
  reply.type('text/plain').send('application: GET /cart\n');
});

const address = await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' });
console.log(`listening on ${address}`);
