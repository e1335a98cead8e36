//! Counts the allocations of each subject for one request, and prints them as JSON. A separate
//! program, because its counting allocator would distort the times.

fn main() -> anyhow::Result<()> {
    let mut counts = Vec::new();
    for mut subject in tidegate_bench_tower::all()? {
        // Warms up reusable buffers.
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
