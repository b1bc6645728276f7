"""An sqlite3 query: a small library, kept in a database file in the workspace."""
import sqlite3

BOOKS = [
    (1, "The Dispossessed", "Le Guin", 1974),
    (2, "The Left Hand of Darkness", "Le Guin", 1969),
    (3, "Solaris", "Lem", 1961),
    (4, "The Cyberiad", "Lem", 1965),
    (5, "Kindred", "Butler", 1979),
]
LOANS = [
    (1, "Mina", "2025-01-03", "2025-01-20"),
    (3, "Mina", "2025-01-03", "2025-02-14"),
    (1, "Omar", "2025-02-01", "2025-02-11"),
    (5, "Omar", "2025-02-01", None),
    (2, "Priya", "2025-02-20", "2025-03-01"),
    (1, "Priya", "2025-03-05", None),
]

database = sqlite3.connect("/workspace/library.db")
with database:
    database.executescript(
        """
        DROP TABLE IF EXISTS loan;
        DROP TABLE IF EXISTS book;
        CREATE TABLE book (id INTEGER PRIMARY KEY, title TEXT NOT NULL, author TEXT NOT NULL, year INTEGER);
        CREATE TABLE loan (book INTEGER REFERENCES book, reader TEXT, lent TEXT, returned TEXT);
        """
    )
    database.executemany("INSERT INTO book VALUES (?, ?, ?, ?)", BOOKS)
    database.executemany("INSERT INTO loan VALUES (?, ?, ?, ?)", LOANS)

print("Loans of each author's books, and how long they took")
for author, loans, days in database.execute(
    """
    SELECT author, count(loan.book), round(avg(julianday(returned) - julianday(lent)), 1)
    FROM book LEFT JOIN loan ON loan.book = book.id
    GROUP BY author ORDER BY count(loan.book) DESC, author
    """
):
    print(f"  {author:8} {loans} {days if days is not None else '-'}")

print("Still out, longest first")
for title, reader, lent, place in database.execute(
    """
    SELECT title, reader, lent, rank() OVER (ORDER BY lent) FROM loan JOIN book ON book.id = loan.book
    WHERE returned IS NULL ORDER BY lent
    """
):
    print(f"  {place}. {title} ({reader}, since {lent})")

database.close()
