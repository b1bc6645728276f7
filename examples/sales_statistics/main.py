"""Statistics on a CSV: sales by region and month, with gaps in the data."""
import pandas as pd

sales = pd.read_csv("/workspace/sales.csv", parse_dates=["date"])
print(f"{len(sales)} rows, {sales['units'].isna().sum()} without a number of units")

sales = sales.dropna(subset=["units"]).assign(
    revenue=lambda table: table["units"] * table["price"],
    month=lambda table: table["date"].dt.strftime("%Y-%m"),
)

print("\nRevenue by region and month")
print(
    sales.pivot_table(index="region", columns="month", values="revenue", aggfunc="sum", fill_value=0)
    .round(0)
    .astype(int)
    .to_string()
)

print("\nUnits an order")
print(sales.groupby("product")["units"].agg(["count", "mean", "median", "max"]).round(2).to_string())

best = sales.groupby("region")["revenue"].sum().idxmax()
print(f"\nBest region: {best}")
{"revenue": round(float(sales["revenue"].sum()), 2), "best": best}
