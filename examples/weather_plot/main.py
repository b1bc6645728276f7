"""A plot saved as PNG: daily temperatures with a moving average."""
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

days = pd.read_csv("/workspace/temperature.csv", index_col="day")
mean = days.mean(axis=1).rolling(7, center=True, min_periods=1).mean()

figure, axes = plt.subplots(figsize=(8, 4), dpi=100)
axes.fill_between(days.index, days["low"], days["high"], alpha=0.3, label="low to high")
axes.plot(days.index, mean, linewidth=2, label="mean over a week")
axes.set(xlabel="day", ylabel="°C", title="Temperature", xlim=(1, len(days)))
axes.grid(alpha=0.3)
axes.legend(loc="upper left")
figure.tight_layout()
figure.savefig("/workspace/plot.png")

print(f"warmest week around day {mean.idxmax()}: {mean.max():.1f} °C")
print("saved plot.png")
