// A JSON report: reads orders, totals them by customer and by article, writes report.json.
const orders = JSON.parse(fs.readFileSync("/workspace/orders.json", "utf8"));

const total = (order) => order.items.reduce((sum, item) => sum + item.count * item.cents, 0);
const euros = (cents) => (cents / 100).toFixed(2);

const customers = new Map();
const articles = new Map();
for (const order of orders) {
  const customer = customers.get(order.customer) ?? { orders: 0, cents: 0, last: "" };
  customer.orders += 1;
  customer.cents += total(order);
  if (order.placed > customer.last) customer.last = order.placed;
  customers.set(order.customer, customer);
  for (const { sku, count } of order.items) articles.set(sku, (articles.get(sku) ?? 0) + count);
}

const report = {
  orders: orders.length,
  total: euros(orders.reduce((sum, order) => sum + total(order), 0)),
  customers: [...customers]
    .sort(([, a], [, b]) => b.cents - a.cents)
    .map(([name, { orders, cents, last }]) => ({ name, orders, total: euros(cents), last })),
  articles: Object.fromEntries([...articles].sort(([a], [b]) => (a < b ? -1 : 1))),
};

fs.writeFileSync("/workspace/report.json", JSON.stringify(report, null, 2) + "\n");
for (const { name, orders, total } of report.customers) {
  console.log(`${name.padEnd(8)} ${String(orders).padStart(2)} orders ${total.padStart(9)}`);
}
console.log(`${"all".padEnd(8)} ${String(report.orders).padStart(2)} orders ${report.total.padStart(9)}`);
console.log(JSON.stringify(report.articles));
