import io.debezium.connector.postgresql.Module;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.DebeziumEngine.RecordCommitter;
import io.debezium.engine.format.JsonByteArray;
import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Properties;

/**
 * Writes what Debezium's embedded engine reads into events.jsonl, and synchronises the file before
 * it marks a batch as processed. Its arguments are the folder of the file, and how many events are
 * expected. When that many are stored it writes the file result, and runs on until it is killed, so
 * that its caller can read its CPU time. The properties of the engine are its standard input.
 */
public final class Snapshot implements DebeziumEngine.ChangeConsumer<ChangeEvent<byte[], byte[]>>, DebeziumEngine.ConnectorCallback {
  private final Path folder;
  private final FileOutputStream file;
  private final long expected;
  private long stored;
  private volatile long began;
  private volatile long cpu;

  private Snapshot(Path folder, long expected) throws IOException {
    this.folder = folder;
    this.file = new FileOutputStream(folder.resolve("events.jsonl").toFile());
    this.expected = expected;
  }

  public static void main(String[] args) throws IOException {
    Properties properties = new Properties();
    properties.load(System.in);
    Snapshot snapshot = new Snapshot(Path.of(args[0]), Long.parseLong(args[1]));
    DebeziumEngine.create(JsonByteArray.class).using(properties).using((DebeziumEngine.ConnectorCallback) snapshot)
        .using((success, message, error) -> System.err.println("the engine has ended: " + message + ": " + error))
        .notifying(snapshot).build().run();
    System.exit(1); // The engine ends only after a failure.
  }

  /** The task has made its slot, and another thread of it begins the snapshot. */
  @Override
  public void taskStarted() {
    cpu = ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime() / 1_000_000;
    began = System.currentTimeMillis();
  }

  @Override
  public void handleBatch(List<ChangeEvent<byte[], byte[]>> records, RecordCommitter<ChangeEvent<byte[], byte[]>> committer) throws InterruptedException {
    try {
      BufferedOutputStream lines = new BufferedOutputStream(file, 1 << 20);
      for (ChangeEvent<byte[], byte[]> record : records) {
        lines.write(record.value());
        lines.write('\n');
      }
      lines.flush();
      file.getChannel().force(true);
      for (ChangeEvent<byte[], byte[]> record : records) {
        committer.markProcessed(record);
      }
      committer.markBatchFinished();
      stored += records.size();
      if (stored >= expected) {
        report(System.currentTimeMillis());
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void report(long now) throws IOException {
    long start = ManagementFactory.getRuntimeMXBean().getStartTime();
    String text = String.format("{\"debezium\": \"%s\", \"java\": \"%s\", \"starting\": %d, \"startingCPU\": %d, \"reading\": %d}",
        Module.version(), System.getProperty("java.version"), began - start, cpu, now - began);
    Files.move(Files.writeString(folder.resolve("part"), text), folder.resolve("result"), StandardCopyOption.ATOMIC_MOVE);
  }
}
