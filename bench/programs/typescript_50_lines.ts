interface User { id: number; name: string; tags?: readonly string[] }
type Pair<A, B> = { left: A; right: B };
enum Role { Admin = 1, Editor, Viewer = "viewer" as any }
abstract class Entity<T extends { id: number }> {
  protected readonly items: Map<number, T> = new Map();
  constructor(private readonly label: string, public limit = 10) {}
  abstract describe(item: T): string;
  add(item: T): this {
    if (this.items.size >= this.limit) throw new RangeError(`${this.label} is full`);
    this.items.set(item.id, item);
    return this;
  }
  get size(): number { return this.items.size; }
  *all(): IterableIterator<T> { yield* this.items.values(); }
}
class Users extends Entity<User> {
  static count: number = 0;
  #secret?: string;
  describe(item: User): string {
    Users.count++;
    return `${item.id}: ${item.name} [${(item.tags ?? []).join(", ")}]`;
  }
}
function pair<A, B>(left: A, right: B): Pair<A, B> { return { left, right }; }
function isUser(value: unknown): value is User {
  return typeof value === "object" && value !== null && "id" in value;
}
const users = new Users("users", 3);
users.add({ id: 1, name: "Ann" }).add({ id: 2, name: "Bob", tags: ["x"] as const });
const lines: string[] = [];
for (const user of users.all()) lines.push(users.describe(user));
let total: number = 0;
const weights: Record<string, number> = { a: 1, b: 2.5 };
for (const [key, value] of Object.entries(weights) as [string, number][]) {
  total += value! * (key === "a" ? 2 : 1);
}
declare const external: string;
const tuple: [number, string?] = [1];
const fn = async <T,>(value: T, ...rest: T[]): Promise<T[]> => [value, ...rest];
function overload(x: number): number;
function overload(x: string): string;
function overload(x: any): any { return x; }
const checked = { kind: "circle", r: 2 } satisfies { kind: string; r: number };
type Fn = (a: number, b?: string) => void;
const callback: Fn = (a, b = "z") => { total += a + b.length; };
callback(1);
const list = (await fn<number>(1, 2, 3)).map((n: number): number => n * 2);
const p = pair<string, number>("l", 2);
const result: object = { lines, total, list, p, role: Role.Editor, ok: isUser({ id: 1 }) };
result as unknown;
