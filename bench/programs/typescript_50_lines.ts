interface User {
  id: number;
  name: string;
  tags?: readonly string[];
}

type Pair<A, B> = { left: A; right: B };

enum Role {
  Admin = 1,
  Editor,
}

abstract class Entity<T extends { id: number }> {
  protected readonly items: Map<number, T> = new Map();
  constructor(private readonly label: string, public limit = 10) {}
  abstract describe(item: T): string;
  add(item: T): this {
    if (this.items.size >= this.limit) {
      throw new RangeError(`${this.label} is full`);
    }
    this.items.set(item.id, item);
    return this;
  }
}

class Users extends Entity<User> {
  static count: number = 0;
  describe(item: User): string {
    Users.count++;
    return `${item.id}: ${(item.tags ?? []).join(", ")}`;
  }
  all(): string[] {
    return [...this.items.values()].map((user) => this.describe(user));
  }
}

function pair<A, B>(left: A, right: B): Pair<A, B> {
  return { left, right };
}

function isUser(value: unknown): value is User {
  return typeof value === "object" && value !== null && "id" in value;
}

const users = new Users("users", 3);
users.add({ id: 1, name: "Ann" }).add({ id: 2, name: "Bob", tags: ["x"] });
const checked = { kind: "circle", r: 2 } satisfies { kind: string; r: number };
const result: object = { all: users.all(), pair: pair<number, string>(1, "b"), role: Role.Editor };
isUser(checked) ? null : (result as unknown);
