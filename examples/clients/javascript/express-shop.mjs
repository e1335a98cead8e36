// A shop in Express. Start it with `node express-shop.mjs`.
import createApp from 'express';
import { Tidegate, express } from './tidegate.mjs';

const tidegate = new Tidegate(process.env.TIDEGATE_URL ?? 'http://127.0.0.1:8080', {
  policy: 'shop',
  timeout: Number(process.env.TIDEGATE_TIMEOUT_MS ?? 250),
  failOpen: process.env.TIDEGATE_FAIL !== 'closed',
});

const app = createApp();
app.use(express(tidegate));
app.get('/cart', (request, response) => {
  response.type('text/plain').send('application: GET /cart\n');
});

const server = app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
