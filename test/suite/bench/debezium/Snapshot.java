import io.debezium.connector.postgresql.Module;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.DebeziumEngine.RecordCommitter;
import io.debezium.engine.format.JsonByteArray;
import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.Reader;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Properties;

/**
 * Writes what Debezium's embedded engine reads to a file, an event a line, and synchronises the file
 * before it marks a batch as processed.
 *
 * <p>Arguments: a file of properties of the engine; the file of events; how many are expected; the
 * file of the result, which appears when that many are stored. The program then runs on, so that its
 * caller can read its CPU time, until it is killed.
 */
public final class Snapshot implements DebeziumEngine.ChangeConsumer<ChangeEvent<byte[], byte[]>>, DebeziumEngine.ConnectorCallback {
  private final FileOutputStream file;
  private final OutputStream buffer;
  private final long expected;
  private final Path result;
  private long stored;
  private volatile long began;
  private volatile long cpuBefore;

  private Snapshot(String[] args) throws IOException {
    file = new FileOutputStream(args[1]);
    buffer = new BufferedOutputStream(file, 1 << 20);
    expected = Long.parseLong(args[2]);
    result = Path.of(args[3]);
  }

  public static void main(String[] args) throws Exception {
    Properties properties = new Properties();
    try (Reader reader = Files.newBufferedReader(Path.of(args[0]))) {
      properties.load(reader);
    }
    Snapshot snapshot = new Snapshot(args);
    DebeziumEngine.create(JsonByteArray.class).using(properties)
        .using((DebeziumEngine.ConnectorCallback) snapshot)
        .using((success, message, error) -> {
          System.err.println("the engine has ended: " + message);
          if (error != null) {
            error.printStackTrace();
          }
        })
        .notifying(snapshot).build().run();
    System.exit(1); // It ends only after a failure.
  }

  /** The connector has its slot and begins its snapshot when its task is started. */
  @Override
  public void connectorStarted() {
    cpuBefore = cpu();
    began = System.currentTimeMillis();
  }

  @Override
  public void handleBatch(List<ChangeEvent<byte[], byte[]>> records, RecordCommitter<ChangeEvent<byte[], byte[]>> committer) throws InterruptedException {
    try {
      for (ChangeEvent<byte[], byte[]> record : records) {
        buffer.write(record.value());
        buffer.write('\n');
      }
      buffer.flush();
      file.getChannel().force(true);
      for (ChangeEvent<byte[], byte[]> record : records) {
        committer.markProcessed(record);
      }
      committer.markBatchFinished();
      boolean before = stored < expected;
      stored += records.size();
      if (before && stored >= expected) {
        report(System.currentTimeMillis());
      }
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  /** Times are in milliseconds. */
  private void report(long now) throws IOException {
    long start = ManagementFactory.getRuntimeMXBean().getStartTime();
    Path part = result.resolveSibling("part");
    Files.writeString(part, String.format("{\"debezium\": \"%s\", \"java\": \"%s\", \"starting\": %d, \"startingCPU\": %d, \"reading\": %d}",
        Module.version(), System.getProperty("java.version"), began - start, cpuBefore, now - began));
    Files.move(part, result, StandardCopyOption.ATOMIC_MOVE);
  }

  private static long cpu() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1_000_000;
  }
}
