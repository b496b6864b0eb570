// Scores along the path of alpha: what follows the slider without asking the server.

// Scores and their standard deviations: B (z / (d + alpha)).
export function along({ B, d, z, path, offset }, alpha) {
  const r = d.length;
  const count = B.length / Math.max(1, r);
  const weight = new Float64Array(r);
  const shrink = new Float64Array(r);
  let rss = path.square;
  let { free } = path;
  for (let j = 0; j < r; j++) {
    shrink[j] = 1 / (d[j] + alpha);
    weight[j] = z[j] * shrink[j];
    rss -= z[j] * weight[j] * (2 - d[j] * shrink[j]);
    free -= d[j] * shrink[j];
  }
  const noise = free > 0 ? Math.sqrt(Math.max(0, rss) / free) : 0;
  const score = new Float64Array(count);
  const spread = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    let total = 0;
    let square = 0;
    for (let j = 0, k = i * r; j < r; j++, k++) {
      total += B[k] * weight[j];
      square += B[k] * B[k] * shrink[j];
    }
    score[i] = total + offset;
    spread[i] = noise * Math.sqrt(square);
  }
  return { score, spread };
}
