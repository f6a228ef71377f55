// Verifies a delivery with the public library of Standard Webhooks, and prints its type. Standard input is an object with
// `secret`, `body` and `headers`.
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

const delivery = JSON.parse(readFileSync(0, "utf8"));
const event = new Webhook(delivery.secret).verify(delivery.body, delivery.headers) as { type: string };
console.log(event.type);
