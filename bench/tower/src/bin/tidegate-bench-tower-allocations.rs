//! Counts what each subject allocates for one request, and prints it as JSON. A program of its own, for
//! counting takes an allocator that nothing should be timed with.

fn main() -> anyhow::Result<()> {
    let mut counts = Vec::new();
    for mut subject in tidegate_bench_tower::all()? {
        // Buffers that stay become warm.
        for _ in 0..3 {
            subject.ask(tidegate_bench_tower::request());
        }
        let request = tidegate_bench_tower::request();
        let counted = allocation_counter::measure(|| {
            subject.ask(request);
        });
        counts.push((subject.name, counted.count_total));
    }
    println!("{}", serde_json::to_string(&counts)?);
    Ok(())
}
