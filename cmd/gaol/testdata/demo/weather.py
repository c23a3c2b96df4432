"""Two small analyses of real tables, as a model would write them; every answer is known beforehand."""

import matplotlib.pyplot as plt
import pandas as pd

weather = pd.read_csv("seattle-weather.csv", parse_dates=["date"])
days = weather.groupby("weather").size().sort_values(ascending=False)
print(f"Seattle, {len(weather)} days from {weather.date.min():%Y} to {weather.date.max():%Y}")
for kind, count in days.items():
    print(f"  {kind:<8}{count:>5} days")
print(f"  precipitation {weather.precipitation.sum():.1f} mm in all")
hottest = weather.loc[weather.temp_max.idxmax()]
print(f"  hottest day {hottest.date:%Y-%m-%d}, {hottest.temp_max} degrees")

strikes = pd.read_csv("birdstrikes.csv", parse_dates=["Flight Date"])
years = strikes.groupby(strikes["Flight Date"].dt.year).size().sort_values(ascending=False)
print(f"Bird strikes, {len(strikes)} reports")
for year, count in years.head(2).items():
    print(f"  {year}{count:>8} reports")

months = weather.groupby(weather.date.dt.month)
figure, axis = plt.subplots(figsize=(8, 4.5))
axis.bar(months.precipitation.sum().index, months.precipitation.sum() / 4, color="#4c78a8")
axis.set(title="Seattle, mean of 2012 to 2015", xlabel="month", ylabel="precipitation, mm")
axis.set_xticks(range(1, 13))
heat = axis.twinx()
heat.plot(months.temp_max.mean(), color="#e45756", marker="o")
heat.set_ylabel("daily high, degrees Celsius")
figure.tight_layout()
figure.savefig("chart.png", dpi=110)
print("wrote chart.png")
