/* The reference of `hnefi bench oneply`: the network of 2007 as a plain forward in C, nothing kept between calls.
 *
 * usage: bench_oneply N HIDDEN ROUNDS WEIGHTS BOARDS
 * WEIGHTS: the genome, doubles. BOARDS: N * N signed bytes a position, top rank first (attackers 1, defenders -1,
 * king -2), then three doubles: men taken by attackers, by defenders, 1 if the attackers are to move.
 * Prints the sum of all values and the CPU seconds of scoring every position ROUNDS times. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 1024

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

static double window(const double **w, const int8_t *board, int n, int row, int column, int rows, int columns) {
    double sum = 0.0;
    for (int r = row; r < row + rows; r++)
        for (int c = column; c < column + columns; c++) sum += *(*w)++ * board[r * n + c];
    return sum;
}

static double forward(const double *w, const int8_t *board, const double *raw, int n, int hidden) {
    double features[MOST];
    int strips = n - 2, f = 0;
    for (int i = 0; i < strips; i++) features[f + i] = window(&w, board, n, 0, i, n, 3);
    for (int i = 0; i < strips; i++, f++) features[f] = sigmoid(features[f] + *w++);
    for (int i = 0; i < strips; i++) features[f + i] = window(&w, board, n, i, 0, 3, n);
    for (int i = 0; i < strips; i++, f++) features[f] = sigmoid(features[f] + *w++);
    for (int i = 0; i < strips * strips; i++)
        features[f + i] = window(&w, board, n, i / strips, i % strips, 3, 3);
    for (int i = 0; i < strips * strips; i++, f++) features[f] = sigmoid(features[f] + *w++);
    for (int i = 0; i < 3; i++) features[f++] = raw[i];
    const double *bias = w + hidden * f, *output = bias + hidden;
    double value = output[hidden];
    for (int h = 0; h < hidden; h++) {
        double sum = bias[h];
        for (int i = 0; i < f; i++) sum += *w++ * features[i];
        value += output[h] * sigmoid(sum);
    }
    return value;
}

static void *read_all(const char *name, size_t *size) {
    FILE *file = fopen(name, "rb");
    if (!file || fseek(file, 0, SEEK_END)) return perror(name), NULL;
    *size = (size_t)ftell(file);
    rewind(file);
    void *data = malloc(*size + 1);
    if (!data || fread(data, 1, *size, file) != *size) return perror(name), NULL;
    fclose(file);
    return data;
}

int main(int argc, char **argv) {
    if (argc != 6) return fprintf(stderr, "expected N HIDDEN ROUNDS WEIGHTS BOARDS\n"), 2;
    int n = atoi(argv[1]), hidden = atoi(argv[2]), rounds = atoi(argv[3]);
    size_t weights_size, size;
    double *weights = read_all(argv[4], &weights_size);
    char *data = read_all(argv[5], &size);
    if (!weights || !data || n < 3 || 2 * (n - 2) + (n - 2) * (n - 2) + 3 > MOST) return 2;
    size_t each = (size_t)(n * n) + 3 * sizeof(double), count = size / each;
    double sum = 0.0;
    clock_t begun = clock();
    for (int r = 0; r < rounds; r++)
        for (size_t i = 0; i < count; i++) {
            double raw[3];
            memcpy(raw, data + i * each + n * n, sizeof raw);
            sum += forward(weights, (int8_t *)data + i * each, raw, n, hidden);
        }
    double seconds = (double)(clock() - begun) / CLOCKS_PER_SEC;
    printf("sum %.9f\nseconds %.6f\n", sum / rounds, seconds);
    return 0;
}
